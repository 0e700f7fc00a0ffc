package messageid

import (
	"context"
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

// schemas knows what the schemas of one part of the records mean to somebody.
type schemas struct {
	ofKey    bool
	framing  Framing
	compile  func(Schema) compiled
	lack     string // what is told of records whose schema compiles to nothing
	registry Registry
	news     *news

	known atomic.Pointer[map[Ref]*compiled] // never changed, only replaced; nil: none
	mu    sync.Mutex                        // of who replaces it
}

// of is what is known of a record's schema. It takes down what the record says of it.
func (s *schemas) of(r *kgo.Record, f *frame) (*compiled, dedup.MissingReason) {
	if missing := s.open(r, f); missing != dedup.NotMissing {
		return nil, missing
	}
	schema, is := s.all()[f.ref]
	switch {
	case !is, !schema.until.IsZero() && time.Now().After(schema.until):
		return nil, dedup.MissingUnresolved
	case schema.missing != dedup.NotMissing:
		return nil, schema.missing
	case !f.unpack():
		return nil, dedup.MissingUnparsable
	}
	return schema, dedup.NotMissing
}

func (s *schemas) all() map[Ref]*compiled {
	if known := s.known.Load(); known != nil {
		return *known
	}
	return nil
}

// mostAsked bounds the requests to the registry that one batch has under way.
const mostAsked = 8

// resolve asks the registry for the schemas of the records, if it is not known what they are.
func (s *schemas) resolve(ctx context.Context, records []*kgo.Record) error {
	known, fresh := s.all(), make(map[Ref]*compiled)
	var mu sync.Mutex
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(mostAsked)
	asked := make(map[Ref]bool)
	for _, r := range records {
		var f frame
		missing := s.open(r, &f)
		have, is := known[f.ref]
		if missing != dedup.NotMissing || asked[f.ref] || is && have.until.IsZero() {
			continue
		}
		asked[f.ref] = true
		asking.Go(func() error {
			c, err := s.ask(ctx, f.ref)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				fresh[f.ref] = c
			}
			return err
		})
	}
	err := asking.Wait() // the first: a registry that is down is not asked for each of many
	s.learn(fresh)
	return err
}

// tell makes it known what a schema does not have.
func (s *schemas) tell(ref Ref, err error) {
	s.news.tell(fmt.Sprintf("records of schema %s %s: %v", ref, s.lack, err))
}

// ask compiles a schema. That there is none, or none that can be used, is an answer.
func (s *schemas) ask(ctx context.Context, ref Ref) (*compiled, error) {
	if s.registry == nil {
		return nil, errors.New("there is no schema registry to ask")
	}
	schema, err := s.schema(ctx, ref)
	c := compiled{missing: dedup.MissingUnknownSchema, err: err}
	switch {
	case errors.Is(err, ErrUnknownSchema):
	case err != nil:
		return nil, fmt.Errorf("schema %s: %w", ref, err)
	default:
		c = s.compile(schema)
	}
	if c.err != nil {
		s.tell(ref, c.err)
	}
	return &c, nil
}

func (s *schemas) schema(ctx context.Context, ref Ref) (Schema, error) {
	if ref.Kind == RefConfigured {
		if named, can := s.registry.(NamedRegistry); can {
			return named.SchemaNamed(ctx, s.framing.Value)
		}
		return Schema{}, fmt.Errorf("%w: it has none by name", ErrUnknownSchema)
	}
	if ref.Kind == RefID {
		return s.registry.Schema(ctx, uint32(ref.id))
	}
	if named, can := s.registry.(RefRegistry); can {
		return named.SchemaOf(ctx, ref)
	}
	return Schema{}, fmt.Errorf("%w: it is not asked by anything but a number of four bytes",
		ErrUnknownSchema)
}

// learn replaces what is known. The times of denials begin here: however long the questions took,
// the records are looked at once more before they end.
func (s *schemas) learn(fresh map[Ref]*compiled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	next := maps.Clone(s.all())
	if next == nil {
		next = make(map[Ref]*compiled)
	}
	maps.DeleteFunc(next, func(_ Ref, c *compiled) bool {
		return !c.until.IsZero() && now.After(c.until)
	})
	for ref, c := range fresh {
		if c.missing == dedup.MissingUnknownSchema {
			c.until = now.Add(askedAgain)
		}
		next[ref] = c
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
