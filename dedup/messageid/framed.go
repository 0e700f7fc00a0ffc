package messageid

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/jsonpath"
)

// framed finds a field of a record behind the ID of its schema, in the wire format of Confluent's
// serializers: a zero, the ID in four bytes, and for Protobuf which message of the schema it is.
type framed struct {
	kind     string
	path     jsonpath.Path
	ofKey    bool
	registry Registry
	news     *news

	known atomic.Pointer[map[uint32]compiled] // never changed, only replaced
	mu    sync.Mutex                          // of who replaces it
}

func newFramed(s Source, news *news) (*framed, error) {
	paths, err := jsonpath.Parse(s.Path)
	if err != nil {
		return nil, fmt.Errorf("path %q %w", s.Path, err)
	}
	if len(paths) > 1 {
		return nil, fmt.Errorf("path %q leads into a document within a string", s.Path)
	}
	if s.Part != "" && s.Part != PartValue && s.Part != PartKey {
		return nil, fmt.Errorf("part %q is not value or key", s.Part)
	}
	f := &framed{kind: s.From, path: paths[0], ofKey: s.Part == PartKey, registry: s.Registry,
		news: news}
	f.known.Store(&map[uint32]compiled{})
	return f, nil
}

// String is the same for all spellings of the path.
func (f *framed) String() string {
	if f.ofKey {
		return f.kind + "_key:" + strconv.Quote(f.path.String())
	}
	return f.kind + ":" + strconv.Quote(f.path.String())
}

func (f *framed) part(r *kgo.Record) []byte {
	if f.ofKey {
		return r.Key
	}
	return r.Value
}

func (f *framed) find(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
	id, body, missing := f.open(r)
	if missing != dedup.NotMissing {
		return "", missing
	}
	schema, is := (*f.known.Load())[id]
	switch {
	case !is, !schema.until.IsZero() && time.Now().After(schema.until):
		return "", dedup.MissingUnresolved
	case schema.missing != dedup.NotMissing:
		return "", schema.missing
	}
	var text []byte
	if schema.avro != nil {
		text, missing = schema.avro.Find(body)
	} else {
		text, missing = f.message(id, schema, body)
	}
	if missing != dedup.NotMissing {
		return "", missing
	}
	return shared(text)
}

// open splits the frame from what is behind it.
func (f *framed) open(r *kgo.Record) (id uint32, body []byte, missing dedup.MissingReason) {
	part := f.part(r)
	switch {
	case part == nil:
		return 0, nil, dedup.MissingNull
	case len(part) == 0:
		return 0, nil, dedup.MissingEmpty
	case part[0] != 0 || len(part) < schemaFrame:
		if isGlue(part) {
			f.news.tell(glueNotice)
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

// maxNested is how deep types lie in each other, at most, where a record names its own.
const maxNested = 16

// message reads which of the schema's messages follows: how many indexes, and the indexes. None
// stands for the first message.
func (f *framed) message(
	id uint32, schema compiled, body []byte,
) ([]byte, dedup.MissingReason) {
	count, n := binary.Varint(body)
	if n <= 0 || count < 0 || count > maxNested {
		return nil, dedup.MissingUnparsable
	}
	body = body[n:]
	var indexes [maxNested]int
	for i := range count {
		index, n := binary.Varint(body)
		if n <= 0 || index != int64(int32(index)) {
			return nil, dedup.MissingUnparsable
		}
		indexes[i], body = int(index), body[n:]
	}
	plan, err := schema.proto.Plan(indexes[:max(count, 1)])
	if err != nil {
		f.news.tell(fmt.Sprintf("records of schema %d have no message ID: %v", id, err))
		return nil, missingFor(err)
	}
	return plan.Find(body)
}

// mostAsked bounds the requests to the registry that one batch has under way.
const mostAsked = 8

// resolve asks the registry for the schemas of the records, if it is not known what they are.
func (f *framed) resolve(ctx context.Context, records []*kgo.Record) error {
	known, fresh := *f.known.Load(), make(map[uint32]compiled)
	var mu sync.Mutex
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(mostAsked)
	asked := make(map[uint32]bool)
	for _, r := range records {
		id, _, missing := f.open(r)
		have, is := known[id]
		if missing != dedup.NotMissing || asked[id] || is && have.until.IsZero() {
			continue
		}
		asked[id] = true
		asking.Go(func() error {
			c, err := f.ask(ctx, id)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				fresh[id] = c
			}
			return err
		})
	}
	err := asking.Wait() // the first: a registry that is down is not asked for each of many
	f.learn(fresh)
	return err
}

// newJSONSchema finds a field of a document that needs no schema to be read, behind the ID of one.
func newJSONSchema(s Source, all *gathered) (finder, string, error) {
	document, err := newJSONSource(s, new(sighting))
	if err != nil {
		return nil, "", err
	}
	frame := &framed{ofKey: document.ofKey, news: &all.news}
	name := strings.Replace(document.String(), "json", FromJSONSchema, 1)
	return func(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
		if _, _, missing := frame.open(r); missing != dedup.NotMissing {
			return "", missing
		}
		return document.find(r)
	}, name, nil
}

// Resolve asks the registry for the schemas of records whose IDs are not known yet. The answers
// serve all later records.
func (e *Extractor) Resolve(ctx context.Context, records []*kgo.Record) error {
	var problems []error
	for _, place := range e.all.schemas {
		problems = append(problems, place.resolve(ctx, records))
	}
	return errors.Join(problems...)
}

// ask compiles a schema. That there is none, or none that can be used, is an answer.
func (f *framed) ask(ctx context.Context, id uint32) (compiled, error) {
	if f.registry == nil {
		return compiled{}, errors.New("there is no schema registry to ask")
	}
	schema, err := f.registry.Schema(ctx, id)
	c := compiled{missing: dedup.MissingUnknownSchema, err: err}
	switch {
	case errors.Is(err, ErrUnknownSchema):
	case err != nil:
		return compiled{}, fmt.Errorf("schema %d: %w", id, err)
	default:
		c = compile(f.kind, f.path, schema)
	}
	if c.err != nil {
		f.news.tell(fmt.Sprintf("records of schema %d have no message ID: %v", id, c.err))
	}
	return c, nil
}

// learn replaces what is known. The times of denials begin here: however long the questions took,
// the records are looked at once more before they end.
func (f *framed) learn(fresh map[uint32]compiled) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	next := maps.Clone(*f.known.Load())
	maps.DeleteFunc(next, func(_ uint32, c compiled) bool {
		return !c.until.IsZero() && now.After(c.until)
	})
	for id, c := range fresh {
		if c.missing == dedup.MissingUnknownSchema {
			c.until = now.Add(askedAgain)
		}
		next[id] = c
	}
	f.known.Store(&next)
}
