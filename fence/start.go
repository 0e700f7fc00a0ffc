package fence

import "github.com/twmb/franz-go/pkg/kgo"

// A start is a fence below which nothing was handled: it says where a scope began on a partition.
// It is written once, at the first start of the scope, and holds until there is a fence. It has a
// key of its own: written late, by a process that stood still, it takes the place of no fence, and
// compaction removes neither for the other.

// StartAt says that a scope begins at an offset of a partition. The epoch is that of the record
// before it, -1 if it is not known.
func StartAt(topicID [16]byte, offset int64, epoch int32, group string) Fence {
	return Fence{TopicID: topicID, LeaderEpoch: epoch, Group: group, steps: []step{{next: offset}}}
}

// startKey is beside the key of the fence. No topic has a slash in its name.
func startKey(input string) string { return input + "/start" }

// StartRecord makes the record of a start.
func StartRecord(fenceTopic, input string, partition int32, start Fence) *kgo.Record {
	r := Record(fenceTopic, input, partition, start)
	r.Key = []byte(startKey(input))
	return r
}

// noteStart keeps the lower one of two starts, so that what came in between is not skipped:
// processes that began together have both decided. That of the topic as it is now comes first.
func (r *reader) noteStart(partition int32, start Fence) {
	before, some := r.starts[partition]
	if some && before.Of(r.from) != start.Of(r.from) {
		some = before.Of(r.from)
	} else if some {
		some = before.Next() <= start.Next()
	}
	if !some {
		r.starts[partition] = start
	}
}

// Begin is the fence of a partition or, if nothing of it was handled yet, its start. Without both,
// nothing was decided about it.
func (f Found) Begin(partition int32) (begin Fence, decided bool) {
	start, started := f.Starts[partition]
	begin, handled := f.Fences[partition]
	if !handled || started && start.Of(f.Input) && begin.Foreign(f.Input) {
		return start, started
	}
	return begin, true
}
