package claimlog

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

func randomRequest() *request {
	q := &request{op: operation(1 + rand.IntN(int(opTime))), group: "orders-dedup",
		log: identity{"log", rand.Uint64()}, keeper: rand.Uint64(),
		limit: milliseconds(rand.Int64N(mostLimit)),
		scope: dedup.Scope{ConsumerGroup: "orders-dedup", Name: "orders", TTL: time.Hour,
			Sliding: rand.IntN(2) == 0}}
	for shard := range rand.IntN(5) {
		s := section{shard: shard, claims: []dedup.Claim{}}
		if q.op.once() {
			s.ticket = rand.Int64()
		}
		if q.op.claims() {
			s.seen = randomSight()
		}
		after := time.Time{}
		if rand.IntN(2) == 0 {
			after = time.UnixMilli(rand.Int64N(1 << 40))
		}
		for range rand.IntN(20) {
			s.claims = append(s.claims, dedup.Claim{ID: randomID(), Owner: randomOwner(),
				Fingerprint: dedup.Fingerprint{byte(rand.Int())}, After: after,
				Copied: q.op == opClaim && rand.IntN(3) == 0})
			if q.op == opImport {
				s.lives = append(s.lives, life{rand.Int64N(1 << 40), rand.Int64N(1 << 40)})
			}
		}
		if len(s.claims) == 0 {
			after = time.Time{}
		}
		q.sections = append(q.sections, s)
	}
	return q
}

func randomSight() sight {
	at := rand.Int64N(1 << 40)
	return sight{Position{rand.Int64(), rand.Int32()}, at, at + rand.Int64N(1<<30)}
}

func randomID() dedup.ID {
	if rand.IntN(2) == 0 {
		return "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	}
	id := make([]byte, rand.IntN(40))
	for i := range id {
		id[i] = byte(rand.Int())
	}
	return dedup.ID(id)
}

func randomOwner() dedup.Coordinates {
	return dedup.Coordinates{TopicID: [16]byte{byte(rand.IntN(2))}, Partition: rand.Int32N(3),
		Offset: rand.Int64(), LeaderEpoch: rand.Int32N(2)}
}

func randomReply(q *request) *reply {
	a := &reply{op: q.op, log: q.log, keeper: q.keeper}
	for _, asked := range q.sections {
		s := answered{shard: asked.shard}
		if q.op.claims() {
			s.seen = randomSight()
		}
		if rand.IntN(4) == 0 {
			s.status, s.why = failed, "the broker's answer was lost"
		}
		if q.op == opTime {
			s.time = rand.Int64()
		}
		for _, c := range asked.claims {
			one := dedup.Answer{Outcome: dedup.Outcome(rand.IntN(3))}
			ends := int64(0)
			switch one.Outcome {
			case dedup.Applied:
				one.Owner, one.Fingerprint = c.Owner, c.Fingerprint
			case dedup.Exists:
				one.Owner = randomOwner()
			}
			if one.Outcome != dedup.Undecided {
				one.ClaimedAt, ends = time.UnixMilli(rand.Int64N(1<<40)), rand.Int64N(1<<40)
			}
			s.answers = append(s.answers, one)
			if q.op == opImport {
				s.settled = append(s.settled, rand.IntN(2) == 0)
			}
			if q.op == opFind {
				s.ends = append(s.ends, ends)
			}
		}
		a.sections = append(a.sections, s)
	}
	return a
}

func TestRequestsAndRepliesComeBackAsTheyWere(t *testing.T) {
	for range 2000 {
		q := randomRequest()
		back, err := parseRequest(q.append(nil))
		if err != nil || !reflect.DeepEqual(back, q) {
			t.Fatalf("a request of operation %d is another one (%v)", q.op, err)
		}
		a := randomReply(q)
		again, err := parseReply(a.append(nil), q)
		if err != nil || !reflect.DeepEqual(again, a) {
			t.Fatalf("a reply to operation %d is another one (%v)", q.op, err)
		}
	}
}

func TestAnotherVersionOfTheWireIsTold(t *testing.T) {
	data := randomRequest().append(nil)
	data[0]++
	if _, err := parseRequest(data); !errors.Is(err, errWireVersion) {
		t.Error(err)
	}
	q := randomRequest()
	if _, err := parseReply(refusal(unknown, "version 2"), q); !errors.Is(err, errWireVersion) {
		t.Error(err)
	}
}

// Bytes of strangers and of broken processes are refused, and cost no more than they are.
func FuzzWire(f *testing.F) {
	for range 20 {
		q := randomRequest()
		f.Add(q.append(nil))
		f.Add(randomReply(q).append(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if q, err := parseRequest(data); err == nil {
			again, err := parseRequest(q.append(nil))
			if err != nil || len(again.sections) != len(q.sections) {
				t.Fatalf("%+v comes back as %+v (%v)", q, again, err)
			}
		}
		q := randomRequest()
		if a, err := parseReply(data, q); err == nil && (a.log != q.log || a.keeper != q.keeper) {
			t.Fatalf("an answer of another one is taken: %+v", a)
		}
	})
}
