package messageid

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/dedup"
)

// schemas knows what the schemas of one part of the records mean to somebody. Records name theirs
// in the wire format of Confluent's serializers: a zero, the ID in four bytes, and for Protobuf
// which message of the schema it is.
type schemas struct {
	ofKey    bool
	compile  func(Schema) compiled
	lack     string // what is told of records whose schema compiles to nothing
	registry Registry
	news     *news

	known atomic.Pointer[map[uint32]*compiled] // never changed, only replaced; nil: none
	mu    sync.Mutex                           // of who replaces it
}

// of is what is known of a record's schema, and what stands behind its ID.
func (s *schemas) of(r *kgo.Record) (
	id uint32, known *compiled, body []byte, missing dedup.MissingReason,
) {
	id, body, missing = s.open(r)
	if missing != dedup.NotMissing {
		return 0, nil, nil, missing
	}
	schema, is := s.all()[id]
	switch {
	case !is, !schema.until.IsZero() && time.Now().After(schema.until):
		return 0, nil, nil, dedup.MissingUnresolved
	case schema.missing != dedup.NotMissing:
		return 0, nil, nil, schema.missing
	}
	return id, schema, body, dedup.NotMissing
}

func (s *schemas) all() map[uint32]*compiled {
	if known := s.known.Load(); known != nil {
		return *known
	}
	return nil
}

// open splits the frame from what is behind it.
func (s *schemas) open(r *kgo.Record) (id uint32, body []byte, missing dedup.MissingReason) {
	part := r.Value
	if s.ofKey {
		part = r.Key
	}
	switch {
	case part == nil:
		return 0, nil, dedup.MissingNull
	case len(part) == 0:
		return 0, nil, dedup.MissingEmpty
	case part[0] != 0 || len(part) < schemaFrame:
		if isGlue(part) {
			s.news.tell(glueNotice)
		}
		return 0, nil, dedup.MissingUnframed
	}
	return binary.BigEndian.Uint32(part[1:]), part[schemaFrame:], dedup.NotMissing
}

const glueNotice = "records begin with the header of the AWS Glue schema registry, which kdedup " +
	"does not read: have the producers write Confluent's wire format, or put the ID in a header"

// isGlue recognises a 3, the compression (none or zlib) and the schema's UUID.
func isGlue(part []byte) bool {
	return len(part) >= 18 && part[0] == 3 && (part[1] == 0 || part[1] == 5)
}

// mostAsked bounds the requests to the registry that one batch has under way.
const mostAsked = 8

// resolve asks the registry for the schemas of the records, if it is not known what they are.
func (s *schemas) resolve(ctx context.Context, records []*kgo.Record) error {
	known, fresh := s.all(), make(map[uint32]*compiled)
	var mu sync.Mutex
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(mostAsked)
	asked := make(map[uint32]bool)
	for _, r := range records {
		id, _, missing := s.open(r)
		have, is := known[id]
		if missing != dedup.NotMissing || asked[id] || is && have.until.IsZero() {
			continue
		}
		asked[id] = true
		asking.Go(func() error {
			c, err := s.ask(ctx, id)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				fresh[id] = c
			}
			return err
		})
	}
	err := asking.Wait() // the first: a registry that is down is not asked for each of many
	s.learn(fresh)
	return err
}

// tell makes it known what a schema does not have.
func (s *schemas) tell(id uint32, err error) {
	s.news.tell(fmt.Sprintf("records of schema %d %s: %v", id, s.lack, err))
}

// ask compiles a schema. That there is none, or none that can be used, is an answer.
func (s *schemas) ask(ctx context.Context, id uint32) (*compiled, error) {
	if s.registry == nil {
		return nil, errors.New("there is no schema registry to ask")
	}
	schema, err := s.registry.Schema(ctx, id)
	c := compiled{missing: dedup.MissingUnknownSchema, err: err}
	switch {
	case errors.Is(err, ErrUnknownSchema):
	case err != nil:
		return nil, fmt.Errorf("schema %d: %w", id, err)
	default:
		c = s.compile(schema)
	}
	if c.err != nil {
		s.tell(id, c.err)
	}
	return &c, nil
}

// learn replaces what is known. The times of denials begin here: however long the questions took,
// the records are looked at once more before they end.
func (s *schemas) learn(fresh map[uint32]*compiled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	next := maps.Clone(s.all())
	if next == nil {
		next = make(map[uint32]*compiled)
	}
	maps.DeleteFunc(next, func(_ uint32, c *compiled) bool {
		return !c.until.IsZero() && now.After(c.until)
	})
	for id, c := range fresh {
		if c.missing == dedup.MissingUnknownSchema {
			c.until = now.Add(askedAgain)
		}
		next[id] = c
	}
	s.known.Store(&next)
}

// Resolve asks the registry for the schemas of records whose IDs are not known yet. The answers
// serve all later records.
func (e *Extractor) Resolve(ctx context.Context, records []*kgo.Record) error {
	var problems []error
	for _, of := range e.schemas {
		problems = append(problems, of.resolve(ctx, records))
	}
	return errors.Join(problems...)
}
