package dedup

import "github.com/twmb/franz-go/pkg/kgo"

// Messages lists the records of a poll with their coordinates, each partition in the order of its
// offsets. Transaction markers, which a client with kgo.KeepControlRecords polls too, are left out.
//
// A record alone does not tell its topic ID; the fetch does. Brokers before 3.1 give none: there a
// topic that is deleted and created again uses its coordinates again.
func Messages(fetches kgo.Fetches) []Message {
	messages := make([]Message, 0, fetches.NumRecords())
	fetches.EachTopic(func(t kgo.FetchTopic) {
		t.EachRecord(func(r *kgo.Record) {
			if r.Attrs.IsControl() {
				return
			}
			messages = append(messages, Message{Record: r, Owner: CoordinatesOf(t.TopicID, r)})
		})
	})
	return messages
}

// CoordinatesOf are those of a record of the topic with the ID, which the record does not tell.
func CoordinatesOf(topicID [16]byte, r *kgo.Record) Coordinates {
	return Coordinates{TopicID: topicID, Partition: r.Partition, Offset: r.Offset,
		LeaderEpoch: r.LeaderEpoch}
}
