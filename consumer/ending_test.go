package consumer

import (
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestTheEndOfATransactionIsWatchedUntilItsMarkersAreWritten(t *testing.T) {
	long, short := time.Hour, 100*time.Millisecond
	for name, row := range map[string]struct {
		timeout time.Duration
		ago     time.Duration
		answers []string // the last one is given again and again
		refused *kerr.Error
		asked   func(times int) bool
	}{
		"they are there":    {long, 0, []string{"CompleteCommit"}, nil, exactly(1)},
		"they come later":   {long, 0, []string{"PrepareCommit", "PrepareCommit", "CompleteCommit"}, nil, exactly(3)},
		"after an abort":    {long, 0, []string{"PrepareAbort", "CompleteAbort"}, nil, exactly(2)},
		"they never come":   {short, 0, []string{"PrepareCommit"}, nil, func(times int) bool { return times > 1 }},
		"not for this user": {long, 0, []string{""}, kerr.TransactionalIDAuthorizationFailed, exactly(1)},
		"it was long ago":   {short, time.Minute, []string{"PrepareCommit"}, nil, exactly(0)},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, brokers := testkit.FakeKafka(t)
			requests := answerDescriptions(cluster, row.answers, row.refused)
			e := newEnding(&member{client: newClient(t, brokers), opts: Options{Member: "lane"}})
			e.timeout, e.decided = row.timeout, time.Now().Add(-row.ago)
			e.wait()
			if got := len(requests.all()); !row.asked(got) {
				t.Errorf("asked %d times", got)
			}
		})
	}
}

func exactly(n int) func(int) bool { return func(times int) bool { return times == n } }

// A broker that has to write before the markers are there tries again after 20 ms.
func TestATransactionBeginsWhenTheMarkersOfTheOneBeforeAreWritten(t *testing.T) {
	cluster, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders", "clean", "fence"))
	requests := answerDescriptions(cluster, []string{"PrepareCommit", "PrepareCommit", "CompleteCommit"}, nil)
	session := joined(t, brokers)
	session.last.timeout = time.Hour
	client := newClient(t, brokers)
	for range 2 {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("v")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		b, err := session.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := session.Begin(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		requests.note("begun")
		if err := session.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"begun", "PrepareCommit", "PrepareCommit", "CompleteCommit", "begun"}
	if got := requests.all(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func joined(t *testing.T, brokers []string) *Transactional {
	session, err := JoinTransactional(t.Context(), Options{
		Connection: []kgo.Opt{kgo.SeedBrokers(brokers...)}, Producer: []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner())},
		Outputs: []string{"clean"}, Input: "orders", ConsumerGroup: "group", FenceTopic: "fence", Member: "group-a-0",
		BatchRecords: 100, BatchBytes: 1 << 20, FetchBytes: 1 << 20, SessionTimeout: 10 * time.Second,
		Metrics: NewCollectors(prometheus.NewRegistry()).For("orders"), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

// journal keeps what happened, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// answerDescriptions gives one state after the other, and notes them.
func answerDescriptions(cluster *kfake.Cluster, states []string, refused *kerr.Error) *journal {
	var given journal
	next := 0
	cluster.ControlKey(int16(kmsg.DescribeTransactions), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		answer := request.ResponseKind().(*kmsg.DescribeTransactionsResponse)
		state := kmsg.NewDescribeTransactionsResponseTransactionState()
		state.TransactionalID = request.(*kmsg.DescribeTransactionsRequest).TransactionalIDs[0]
		state.State = states[min(next, len(states)-1)]
		next++
		if refused != nil {
			state.ErrorCode = refused.Code
		}
		answer.TransactionStates = append(answer.TransactionStates, state)
		given.note(state.State)
		return answer, nil, true
	})
	return &given
}
