package api

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
)

// codec reads and writes Protocol Buffers. A batch has thousands of small messages, each of several
// objects: the ones of a request get their memory at once here, and the answer is written without
// asking the descriptors of its fields. All else is left to package proto, also what is unusual in
// a batch, so that there is one truth about the format.
//
// It stays for what it saves: nearly half of the objects of a batch, and about a seventh of the
// time of a call (docs/api.md has the numbers). What it costs is bounded. A caller is known before
// a byte is read. A field that it does not know is read by package proto, and
// TestTheCodecWritesEveryFieldOfAnAnswer fails for one that it would not write. FuzzCodecReads and
// FuzzCodecWrites compare it with package proto.
type codec struct {
	batch int // the most messages of a request that is not refused
}

// Name is the one that connect knows Protocol Buffers by.
func (codec) Name() string { return "proto" }

func (c codec) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalAppend is an optional part of a codec.
func (codec) MarshalAppend(to []byte, message any) ([]byte, error) {
	switch m := message.(type) {
	case *kdedupv1.JudgeResponse:
		return appendJudgements(to, m.GetJudgements()), nil
	case proto.Message:
		return proto.MarshalOptions{}.MarshalAppend(to, m)
	}
	return nil, notAMessage("marshal", message)
}

// Unmarshal keeps nothing of data, which connect uses again.
func (c codec) Unmarshal(data []byte, message any) error {
	if m, ok := message.(*kdedupv1.JudgeRequest); ok {
		if messages, ok := countMessages(data); ok && messages <= c.batch {
			return readJudgeRequest(data, messages, m)
		}
	}
	if m, ok := message.(proto.Message); ok {
		return proto.Unmarshal(data, m)
	}
	return notAMessage("unmarshal", message)
}

func notAMessage(what string, message any) error {
	return fmt.Errorf("%s: %T is no message of Protocol Buffers", what, message)
}

// IsBinary is an optional part of a codec: without it connect would take the messages for text.
func (codec) IsBinary() bool { return true }

// field is one of a message, as it is on the wire.
type field struct {
	number protowire.Number
	kind   protowire.Type
	varint uint64
	from   int // of the bytes, in the data
	until  int
}

// next reads the field at an offset, and returns where the following one begins. It is not ok for
// what is malformed, and for kinds of fields that no message here has.
func next(data []byte, at, end int) (f field, after int, ok bool) {
	var n int
	f.number, f.kind, n = protowire.ConsumeTag(data[at:end])
	if n < 0 {
		return f, 0, false
	}
	at += n
	length := uint64(0)
	switch f.kind {
	case protowire.VarintType:
		f.varint, n = protowire.ConsumeVarint(data[at:end])
	case protowire.BytesType:
		length, n = protowire.ConsumeVarint(data[at:end])
	default:
		return f, 0, false
	}
	if n < 0 || length > uint64(end-at-n) {
		return f, 0, false
	}
	f.from, f.until = at+n, at+n+int(length)
	return f, f.until, true
}

// batch is a request on its way into messages, which share its memory.
type batch struct {
	text string
	data []byte
	room []room
}

// room is the memory of a message with a record of Kafka.
type room struct {
	message kdedupv1.Message
	place   kdedupv1.Place
	either  kdedupv1.Place_Record
	record  kdedupv1.Record
	epoch   int32
}

func readJudgeRequest(data []byte, messages int, to *kdedupv1.JudgeRequest) error {
	b := batch{text: string(data), data: bytes.Clone(data), room: make([]room, messages)}
	to.Messages = make([]*kdedupv1.Message, messages)
	var f field
	i := 0
	for at := 0; at < len(data); {
		f, at, _ = next(data, at, len(data))
		if f.number == 1 {
			to.Scope = b.text[f.from:f.until]
			continue
		}
		to.Messages[i] = &b.room[i].message
		if !b.message(f, &b.room[i]) {
			to.Messages[i] = &kdedupv1.Message{}
			if err := proto.Unmarshal(b.data[f.from:f.until], to.Messages[i]); err != nil {
				return err
			}
		}
		i++
	}
	return nil
}

// countMessages is not ok for a request that package proto has to read.
func countMessages(data []byte) (messages int, ok bool) {
	for at := 0; at < len(data); {
		var f field
		f, at, ok = next(data, at, len(data))
		switch {
		case !ok || f.kind != protowire.BytesType:
			return 0, false
		case f.number == 1 && utf8.Valid(data[f.from:f.until]):
		case f.number == 2:
			messages++
		default:
			return 0, false
		}
	}
	return messages, true
}

// message reads one. It is not ok for what package proto has to read.
func (b *batch) message(of field, to *room) (ok bool) {
	for at := of.from; at < of.until; {
		var f field
		f, at, ok = next(b.data, at, of.until)
		if !ok || f.kind != protowire.BytesType {
			return false
		}
		switch f.number {
		case 1:
			to.message.Id = b.text[f.from:f.until]
			ok = utf8.ValidString(to.message.Id)
		case 2:
			to.message.IdBytes = b.bytes(f)
		case 3: // a second one would be merged with the first
			ok = to.message.Place == nil && b.place(f, to)
		case 4:
			to.message.Fingerprint = b.bytes(f)
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return true
}

func (b *batch) bytes(f field) []byte { return b.data[f.from:f.until:f.until] }

func (b *batch) place(of field, to *room) (ok bool) {
	f, after, ok := next(b.data, of.from, of.until)
	if !ok || after != of.until || f.number != 1 || f.kind != protowire.BytesType {
		return false
	}
	to.message.Place, to.place.Place, to.either.Record = &to.place, &to.either, &to.record
	return b.record(f, to)
}

func (b *batch) record(of field, to *room) (ok bool) {
	for at := of.from; at < of.until; {
		var f field
		f, at, ok = next(b.data, at, of.until)
		if !ok || (f.number <= 2) != (f.kind == protowire.BytesType) {
			return false
		}
		switch f.number {
		case 1:
			to.record.Topic = b.text[f.from:f.until]
			if !utf8.ValidString(to.record.Topic) {
				return false
			}
		case 2:
			to.record.TopicId = b.bytes(f)
		case 3:
			to.record.Partition = int32(f.varint)
		case 4:
			to.record.Offset = int64(f.varint)
		case 5:
			to.epoch = int32(f.varint)
			to.record.LeaderEpoch = &to.epoch
		default:
			return false
		}
	}
	return true
}
