package api

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/api/kdedup/v1/kdedupv1connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/embedded"
)

// serveEnv makes the test binary a server on the store in the directory that it names.
const serveEnv = "KDEDUP_TEST_API_STORE"

func TestMain(m *testing.M) {
	if path := os.Getenv(serveEnv); path != "" {
		serveForever(path)
	}
	goleak.VerifyTestMain(m)
}

// serveForever prints its address, and ends only by a kill.
func serveForever(path string) {
	store, err := embedded.Open(embedded.Options{Path: filepath.Join(path, "claims"),
		Logger: quiet()})
	if err != nil {
		log.Fatal(err)
	}
	keys, err := openKeys(path)
	if err != nil {
		log.Fatal(err)
	}
	scope := scopeNamed("orders")
	if err := store.Register(context.Background(), scope); err != nil {
		log.Fatal(err)
	}
	s, err := New(Options{Listen: "127.0.0.1:0", Store: store, Keys: keys, Limits: testLimits,
		Scopes:  func(name string) (dedup.Scope, bool) { return scope, name == "orders" },
		Ready:   func(context.Context) error { return nil },
		Metrics: NewMetrics(prometheus.NewRegistry()), Logger: quiet()})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.URL())
	log.Fatal(s.Run(context.Background()))
}

// startServer returns when the process serves.
func startServer(t testing.TB, path string) (process *exec.Cmd, url string) {
	t.Helper()
	process = exec.Command(os.Args[0])
	process.Env = append(os.Environ(), serveEnv+"="+path)
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the server did not start: %v", lines.Err())
	}
	return process, lines.Text()
}

// killServer starts another server in the place of one that it kills.
func killServer(
	t *testing.T, process *exec.Cmd, path string, url *atomic.Value,
) (next *exec.Cmd) {
	t.Helper()
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()
	next, at := startServer(t, path)
	url.Store(at)
	return next
}

// consumer judges the same IDs as the others, each at a place of its own, and repeats what got no
// answer: as records of Kafka are delivered again.
type consumer struct {
	number int32
	url    *atomic.Value // of the server that runs now
	ids    int
	judged atomic.Int64
	owns   map[string]int // how often it was told to run the effect of an ID
}

const killBatch = 20

func (c *consumer) run(t *testing.T) {
	client := clearText(t)
	for from := 0; from < c.ids; from += killBatch {
		var batch []*kdedupv1.Message
		for n := from; n < from+killBatch; n++ {
			batch = append(batch, &kdedupv1.Message{Id: fmt.Sprint("id-", n),
				Place: &kdedupv1.Place{Place: &kdedupv1.Place_Record{Record: &kdedupv1.Record{
					Topic: "orders", Partition: c.number, Offset: int64(n)}}}})
		}
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			server := kdedupv1connect.NewClaimServiceClient(client, c.url.Load().(string),
				connect.WithGRPC())
			response, err := server.Judge(ctx, connect.NewRequest(of(batch...)))
			cancel()
			if t.Context().Err() != nil {
				return
			}
			if err != nil {
				continue
			}
			for i, j := range response.Msg.GetJudgements() {
				switch j.GetVerdict() {
				case kdedupv1.Verdict_VERDICT_FIRST, kdedupv1.Verdict_VERDICT_MINE:
					c.owns[batch[i].GetId()]++
				}
			}
			break
		}
		c.judged.Add(killBatch)
	}
}

func TestAKilledServerGivesNoIDToTwoMessages(t *testing.T) {
	const consumers, ids, kills = 4, 4000, 5
	path := t.TempDir()
	var url atomic.Value
	process, at := startServer(t, path)
	defer func() { _ = process.Process.Kill(); _ = process.Wait() }()
	url.Store(at)
	all := make([]*consumer, consumers)
	var running sync.WaitGroup
	for n := range all {
		all[n] = &consumer{number: int32(n), url: &url, ids: ids, owns: make(map[string]int)}
		running.Go(func() { all[n].run(t) })
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for kill := range kills {
		for all[0].judged.Load() < int64(ids*(kill+1)/(kills+1)) {
			<-tick.C
		}
		<-time.After(rand.N(20 * time.Millisecond)) // somewhere within a batch
		process = killServer(t, process, path, &url)
	}
	running.Wait()
	owners := make(map[string]int)
	for _, c := range all {
		for id := range c.owns {
			owners[id]++
		}
	}
	for n := range ids {
		if id := fmt.Sprint("id-", n); owners[id] != 1 {
			t.Errorf("%s was given to %d messages", id, owners[id])
		}
	}
}
