package chaos_test

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/skip"
)

const (
	exactlyOnce = "exactly_once"
	atLeastOnce = "at_least_once"
	periodic    = "periodic"

	// where the claims are
	inCassandra = "cassandra" // in rows
	inLog       = "cassandra-log"
	inKafka     = "kafka"
)

// options are the environment's, see the package comment.
type options struct {
	length     time.Duration // of each storm
	seed       uint64
	deliveries []string
	rate       int
	store      string
	commitLog  string
	settings   string
	keep       string // see keepers
	dir        string
	apart      apart
}

func readOptions(t *testing.T) options {
	t.Helper()
	o := options{
		seed: uint64(testkit.Number(t, "CHAOS_SEED", 1)),
		deliveries: strings.Split(cmp.Or(os.Getenv("CHAOS_DELIVERY"), exactlyOnce+","+atLeastOnce),
			","),
		rate:      testkit.Number(t, "CHAOS_RATE", 2000),
		store:     cmp.Or(os.Getenv("CHAOS_STORE"), inCassandra),
		commitLog: cmp.Or(os.Getenv("CHAOS_COMMITLOG"), "batch"),
		settings:  os.Getenv("CHAOS_SETTINGS"),
		keep:      os.Getenv("CHAOS_KEEP"),
		dir:       os.Getenv("CHAOS_DIR"),
	}
	for _, delivery := range o.deliveries {
		if !slices.Contains([]string{exactlyOnce, atLeastOnce}, delivery) {
			t.Fatalf("CHAOS_DELIVERY: unknown %q", delivery)
		}
	}
	if !slices.Contains([]string{inCassandra, inLog, inKafka}, o.store) {
		t.Fatalf("CHAOS_STORE: unknown %q", o.store)
	}
	o.apart = drawApart(t, o.seed, o.store)
	if !slices.Contains([]string{"", keepAll, keepShared, keepOnly, keepNone}, o.keep) {
		t.Fatalf("CHAOS_KEEP: unknown %q", o.keep)
	}
	seconds := testkit.Number(t, "CHAOS_SECONDS", 90)
	o.length = time.Duration(seconds) * time.Second / time.Duration(len(o.deliveries))
	if o.dir == "" {
		o.dir = t.TempDir()
	}
	return o
}

// calmRecords are produced after the faults, when every one of them must be counted.
const calmRecords = 4000

func TestChaos(t *testing.T) {
	if os.Getenv("CHAOS_SEED") == "" {
		skip.Proof(t)
	}
	o := readOptions(t)
	world := startWorld(t, o)
	build(t)
	for _, delivery := range o.deliveries {
		t.Run(delivery, func(t *testing.T) {
			s := newStorm(t, world, o, delivery)
			s.rage(o.length, o.rate)
			s.traffic.flush(t)
			s.waitDone()
			s.logf("everything is committed")
			s.waitReady()
			s.checkCalm(calmRecords)
			// in a short run once: the claims are the same
			if o.store != inKafka && (delivery == exactlyOnce || o.length >= time.Minute) {
				s.loseQuorum(calmRecords)
			}
			s.finish(o)
		})
	}
}

// finish stops the processes and passes judgement.
func (s *storm) finish(o options) {
	s.t.Helper()
	s.checkCounters(s.traffic.serial)
	for _, w := range s.workers[:usualProcesses] {
		w.stop()
	}
	v := s.check()
	claims := o.store
	if o.store != inKafka {
		claims += " with commitlog_sync " + o.commitLog
	}
	if o.store != inCassandra {
		claims += fmt.Sprintf(", kept by %v, %d copies", s.keeps, s.copies)
	}
	summary := fmt.Sprintf("%s, %s, %v, seed %d, %v of faults, %d CPUs\n%v\n%s",
		s.delivery, claims, o.apart, s.seed, o.length, runtime.NumCPU(), v, s.report())
	s.t.Log(summary)
	if v.broken(s.delivery) {
		s.t.Errorf("the promise is broken:\n%s\n%s", summary, s.logs())
	}
}
