package api

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"

	"connectrpc.com/connect"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/dedup"
)

// A place that is no record in Kafka is kept as coordinates that no record has: a digest of it, and
// an epoch which marks it. Kafka's epochs are -1 at least.
const digestEpoch = -2

// MaxPlace is the longest place of text or bytes.
const MaxPlace = 1024

// byHand owns the IDs that an operator has claimed, as in kdedup id claim.
var byHand = dedup.Coordinates{Partition: -1, Offset: -1, LeaderEpoch: -1}

// topics remembers the last name of a topic with what stands for its ID: the messages of a request
// mostly have one.
type topics struct {
	name string
	id   [16]byte
}

func (t *topics) idOf(name string) [16]byte {
	if name != t.name {
		t.name, t.id = name, topicID(name)
	}
	return t.id
}

// placeOf is under which coordinates a message claims its ID.
func (t *topics) placeOf(p *kdedupv1.Place) (dedup.Coordinates, error) {
	switch at := p.GetPlace().(type) {
	case *kdedupv1.Place_Record:
		return t.recordPlace(at.Record)
	case *kdedupv1.Place_Text:
		return digestPlace([]byte(at.Text))
	case *kdedupv1.Place_Raw:
		return digestPlace(at.Raw)
	}
	return dedup.Coordinates{}, invalid("place: is required: record, text or raw")
}

func (t *topics) recordPlace(r *kdedupv1.Record) (c dedup.Coordinates, err error) {
	id := r.GetTopicId()
	switch {
	case r.GetTopic() != "" && len(id) > 0:
		return c, invalid("place.record.topic: set either topic or topic_id, not both")
	case r.GetTopic() == "" && len(id) == 0:
		return c, invalid("place.record.topic: is required, as topic or as topic_id")
	case len(r.GetTopic()) > MaxPlace:
		return c, invalid("place.record.topic: must have at most %d bytes, got %d", MaxPlace,
			len(r.GetTopic()))
	case len(id) > 0 && len(id) != len(c.TopicID):
		return c, invalid("place.record.topic_id: must have %d bytes, got %d", len(c.TopicID),
			len(id))
	case r.GetPartition() < 0:
		return c, invalid("place.record.partition: must be 0 at least, got %d", r.GetPartition())
	case r.GetOffset() < 0:
		return c, invalid("place.record.offset: must be 0 at least, got %d", r.GetOffset())
	case r.GetLeaderEpoch() < -1:
		return c, invalid("place.record.leader_epoch: must be -1 at least, got %d",
			r.GetLeaderEpoch())
	}
	c = dedup.Coordinates{Partition: r.GetPartition(), Offset: r.GetOffset(), LeaderEpoch: -1}
	if r.LeaderEpoch != nil {
		c.LeaderEpoch = r.GetLeaderEpoch()
	}
	if len(id) > 0 {
		copy(c.TopicID[:], id)
	} else {
		c.TopicID = t.idOf(r.GetTopic())
	}
	if c.TopicID == ([16]byte{}) { // it would be equal to any, see dedup.Coordinates
		return c, invalid("place.record.topic_id: must not be all zero")
	}
	return c, nil
}

// topicID stands for the ID of a topic of which only the name is known.
func topicID(name string) (id [16]byte) {
	sum := sha256.Sum256([]byte("kdedup topic\x00" + name))
	copy(id[:], sum[:])
	return id
}

func digestPlace(place []byte) (c dedup.Coordinates, err error) {
	if len(place) == 0 || len(place) > MaxPlace {
		return c, invalid("place: must have 1 to %d bytes, got %d", MaxPlace, len(place))
	}
	sum := sha256.Sum256(place)
	copy(c.TopicID[:], sum[:16])
	c.Partition = int32(binary.BigEndian.Uint32(sum[16:]) & math.MaxInt32)
	c.Offset = int64(binary.BigEndian.Uint64(sum[20:]) & math.MaxInt64)
	c.LeaderEpoch = digestEpoch
	return c, nil
}

// owned is the memory of an Owner: those of a request are made at once.
type owned struct {
	owner  kdedupv1.Owner
	record kdedupv1.Record
	epoch  int32
	topic  [16]byte
}

// ownerOf tells who owns an ID. The name of a topic is known only if the asking place tells it.
func (t *topics) ownerOf(
	to *owned, c dedup.Coordinates, asks *kdedupv1.Place,
) *kdedupv1.Owner {
	switch {
	case c == byHand:
		to.owner.ByHand = true
		return &to.owner
	case c.LeaderEpoch == digestEpoch:
		digest := append(make([]byte, 0, 28), c.TopicID[:]...)
		digest = binary.BigEndian.AppendUint32(digest, uint32(c.Partition))
		to.owner.Digest = binary.BigEndian.AppendUint64(digest, uint64(c.Offset))
		return &to.owner
	}
	to.epoch, to.topic = c.LeaderEpoch, c.TopicID
	to.record.Partition, to.record.Offset, to.record.LeaderEpoch = c.Partition, c.Offset, &to.epoch
	if name := asks.GetRecord().GetTopic(); name != "" && t.idOf(name) == c.TopicID {
		to.record.Topic = name
	} else {
		to.record.TopicId = to.topic[:]
	}
	to.owner.Record = &to.record
	return &to.owner
}

func fingerprintBytes(f dedup.Fingerprint) []byte {
	if f == (dedup.Fingerprint{}) {
		return nil
	}
	return f[:]
}

// messageOf is the text of an error without its code.
func messageOf(err error) string {
	var coded *connect.Error
	if errors.As(err, &coded) {
		return coded.Message()
	}
	return err.Error()
}
