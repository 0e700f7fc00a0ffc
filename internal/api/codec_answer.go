package api

import (
	"google.golang.org/protobuf/encoding/protowire"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
)

// appendJudgements writes a JudgeResponse. A message inside of another has its length in front, so
// each is written behind a gap of one byte; the few that are longer than that byte can say are
// moved.
func appendJudgements(to []byte, judgements []*kdedupv1.Judgement) []byte {
	for _, j := range judgements {
		var at int
		to, at = open(to, 1)
		to = appendVarint(to, 1, uint64(j.GetVerdict()))
		if owner := j.GetOwner(); owner != nil {
			to = appendOwner(to, owner)
		}
		if claimed := j.GetClaimedAt(); claimed != nil {
			var in int
			to, in = open(to, 3)
			to = appendVarint(to, 1, uint64(claimed.GetSeconds()))
			to = appendVarint(to, 2, uint64(claimed.GetNanos()))
			to = shut(to, in)
		}
		to = shut(to, at)
	}
	return to
}

func appendOwner(to []byte, owner *kdedupv1.Owner) []byte {
	to, at := open(to, 2)
	if r := owner.GetRecord(); r != nil {
		var in int
		to, in = open(to, 1)
		to = appendText(to, 1, r.GetTopic())
		to = appendText(to, 2, r.GetTopicId())
		to = appendVarint(to, 3, uint64(r.GetPartition()))
		to = appendVarint(to, 4, uint64(r.GetOffset()))
		if r.LeaderEpoch != nil {
			to = protowire.AppendTag(to, 5, protowire.VarintType)
			to = protowire.AppendVarint(to, uint64(r.GetLeaderEpoch()))
		}
		to = shut(to, in)
	}
	to = appendText(to, 2, owner.GetDigest())
	if owner.GetByHand() {
		to = appendVarint(to, 3, 1)
	}
	return shut(to, at)
}

// open begins a message; at is where its bytes are.
func open(to []byte, number protowire.Number) (_ []byte, at int) {
	to = append(protowire.AppendTag(to, number, protowire.BytesType), 0)
	return to, len(to)
}

func shut(to []byte, at int) []byte {
	length := len(to) - at
	more := protowire.SizeVarint(uint64(length)) - 1
	for range more {
		to = append(to, 0)
	}
	copy(to[at+more:], to[at:at+length])
	protowire.AppendVarint(to[:at-1], uint64(length))
	return to
}

// appendVarint leaves out a zero, as all fields do that are not optional.
func appendVarint(to []byte, number protowire.Number, value uint64) []byte {
	if value == 0 {
		return to
	}
	to = protowire.AppendTag(to, number, protowire.VarintType)
	return protowire.AppendVarint(to, value)
}

func appendText[T ~string | ~[]byte](to []byte, number protowire.Number, text T) []byte {
	if len(text) == 0 {
		return to
	}
	to = protowire.AppendTag(to, number, protowire.BytesType)
	return append(protowire.AppendVarint(to, uint64(len(text))), text...)
}
