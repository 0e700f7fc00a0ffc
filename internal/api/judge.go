package api

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/types/known/timestamppb"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/dedup"
)

// ExtractorName is what a scope of the API is registered with: its callers tell the IDs.
const ExtractorName = "api"

// judges are the dedupers of one scope, as many as requests are under way.
type judges struct {
	pool sync.Pool
}

func newJudges(scope dedup.Scope, store dedup.Store, log *slog.Logger) *judges {
	outages := dedup.NewOutages(log)
	var made atomic.Int64
	return &judges{sync.Pool{New: func() any {
		return &judge{deduper: dedup.New(scope, store, dedup.Options{
			Extractor: given{}, Logger: log, Outages: outages,
			Topic: "scope " + scope.Name, Lane: int(made.Add(1)),
		})}
	}}}
}

func (j *judges) get() *judge { return j.pool.Get().(*judge) }

// put lets go of what the request told.
func (j *judges) put(used *judge) {
	clear(used.records)
	clear(used.messages)
	used.topics = topics{}
	j.pool.Put(used)
}

// judge is the deduper of one request at a time, with the memory that it takes.
type judge struct {
	deduper  *dedup.Deduper
	records  []kgo.Record // that hold what given finds
	messages []dedup.Message
	topics   topics
}

// read takes the messages of a request, or says what is wrong with the first that is.
func (j *judge) read(messages []*kdedupv1.Message) error {
	j.records = slices.Grow(j.records[:0], len(messages))[:len(messages)]
	j.messages = slices.Grow(j.messages[:0], len(messages))[:len(messages)]
	for i, m := range messages {
		if err := j.readOne(i, m); err != nil {
			return err
		}
	}
	return nil
}

func (j *judge) readOne(i int, m *kdedupv1.Message) error {
	id, err := idOf("", m.GetId(), m.GetIdBytes())
	if err != nil {
		return within(i, err)
	}
	owner, err := j.topics.placeOf(m.GetPlace())
	if err != nil {
		return within(i, err)
	}
	if n := len(m.GetFingerprint()); n != 0 && n != len(dedup.Fingerprint{}) {
		return within(i, invalid("fingerprint: must have %d bytes or none, got %d",
			len(dedup.Fingerprint{}), n))
	}
	j.records[i] = kgo.Record{Topic: string(id), Value: m.GetFingerprint()}
	j.messages[i] = dedup.Message{Record: &j.records[i], Owner: owner}
	if settled := m.GetSettledUntil(); settled != nil {
		if err := settled.CheckValid(); err != nil {
			return within(i, invalid("settled_until: %v", err))
		}
		j.messages[i].Settled = settled.AsTime()
	}
	return nil
}

// within names the message of an error.
func within(i int, err error) error {
	return invalid("%s", fmt.Sprintf("messages[%d].%s", i, messageOf(err)))
}

var verdicts = map[dedup.Verdict]kdedupv1.Verdict{
	dedup.VerdictFirst:     kdedupv1.Verdict_VERDICT_FIRST,
	dedup.VerdictMine:      kdedupv1.Verdict_VERDICT_MINE,
	dedup.VerdictReplay:    kdedupv1.Verdict_VERDICT_REPLAY,
	dedup.VerdictDuplicate: kdedupv1.Verdict_VERDICT_DUPLICATE,
	dedup.VerdictConflict:  kdedupv1.Verdict_VERDICT_CONFLICT,
}

// answer tells the judgements. It keeps nothing of the judge's memory.
func (j *judge) answer(
	messages []*kdedupv1.Message, judgements []dedup.Judgement,
) *kdedupv1.JudgeResponse {
	all := make([]struct {
		kdedupv1.Judgement
		owned
		claimedAt timestamppb.Timestamp
	}, len(judgements))
	response := &kdedupv1.JudgeResponse{Judgements: make([]*kdedupv1.Judgement, len(judgements))}
	for i := range judgements {
		of := &judgements[i]
		all[i].Verdict = verdicts[of.Verdict]
		all[i].Owner = j.topics.ownerOf(&all[i].owned, of.Owner, messages[i].GetPlace())
		all[i].claimedAt.Seconds = of.ClaimedAt.Unix()
		all[i].claimedAt.Nanos = int32(of.ClaimedAt.Nanosecond())
		all[i].ClaimedAt = &all[i].claimedAt
		response.Judgements[i] = &all[i].Judgement
	}
	return response
}

// given is the Extractor of messages whose callers told the ID and the fingerprint: judge.read has
// put them into records.
type given struct{}

var _ dedup.Extractor = given{}

func (given) Extract(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
	return dedup.ID(r.Topic), dedup.NotMissing
}

func (given) String() string                     { return ExtractorName }
func (given) Fingerprinter() dedup.Fingerprinter { return given{} }
func (given) Notice() string                     { return "" }

func (given) Of(r *kgo.Record) (f dedup.Fingerprint) {
	copy(f[:], r.Value)
	return f
}
