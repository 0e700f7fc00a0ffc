package redis_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/redis"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// benchBatch is how many IDs a lane has at a time. One in ten is known.
const benchBatch = 5000

func BenchmarkClaims(b *testing.B) { perID(b, claiming(b)) }

// BenchmarkSetNX is what somebody writes who only wants to know whether an ID is new.
func BenchmarkSetNX(b *testing.B) { perID(b, setting(b)) }

// BenchmarkClaimsAgainstSetNX does both in turn, so that what else the machine does hits both.
func BenchmarkClaimsAgainstSetNX(b *testing.B) {
	ours, theirs := stopwatch{run: claiming(b)}, stopwatch{run: setting(b)}
	for round := 0; b.Loop(); round++ {
		ids := benchIDs(round)
		ours.batch(b, ids)
		theirs.batch(b, ids)
	}
	b.ReportMetric(theirs.took.Seconds()/ours.took.Seconds(), "speed-ratio")
	b.ReportMetric(theirs.cpu.Seconds()/ours.cpu.Seconds(), "cpu-ratio")
	b.ReportMetric(ours.cpu.Seconds()*1e6/float64(ours.ids), "cpu-µs/claim")
}

func perID(b *testing.B, run func([]string) error) {
	b.ReportAllocs()
	batches := make([][]string, b.N/benchBatch+1)
	for i := range batches {
		batches[i] = benchIDs(i)
	}
	b.ResetTimer()
	for _, ids := range batches {
		if err := run(ids); err != nil {
			b.Fatal(err)
		}
	}
}

func claiming(b *testing.B) func(ids []string) error {
	options := optionsFor(servers.Redis(b))
	store, err := redis.Open(b.Context(), options, prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	scope := scope
	scope.Name = fmt.Sprint(time.Now().UnixNano())
	claims := make([]dedup.Claim, benchBatch)
	return func(ids []string) error {
		for i, id := range ids {
			claims[i] = dedup.Claim{ID: dedup.ID(id), Owner: dedup.Coordinates{Offset: int64(i)}}
		}
		_, err := store.Claim(b.Context(), scope, claims)
		return err
	}
}

func setting(b *testing.B) func(ids []string) error {
	client := goredis.NewClient(&goredis.Options{Addr: servers.Redis(b)})
	b.Cleanup(func() { _ = client.Close() })
	prefix := fmt.Sprint("dedup:", time.Now().UnixNano(), ":")
	return func(ids []string) error {
		pipeline := client.Pipeline()
		for _, id := range ids {
			pipeline.SetNX(b.Context(), prefix+id, "1", time.Hour)
		}
		_, err := pipeline.Exec(b.Context())
		return err
	}
}

// benchIDs are those of one batch; one in ten is of the batch before.
func benchIDs(round int) []string {
	ids := make([]string, benchBatch)
	for i := range ids {
		number := round*benchBatch + i
		if i%10 == 0 && round > 0 {
			number -= benchBatch - 1
		}
		ids[i] = fmt.Sprintf("order-%012d", number)
	}
	return ids
}

// stopwatch adds up what batches take, also of this process's processor time.
type stopwatch struct {
	run       func([]string) error
	ids       int
	took, cpu time.Duration
}

func (s *stopwatch) batch(b *testing.B, ids []string) {
	start, before := time.Now(), cpuTime(b)
	if err := s.run(ids); err != nil {
		b.Fatal(err)
	}
	s.took, s.cpu, s.ids = s.took+time.Since(start), s.cpu+cpuTime(b)-before, s.ids+len(ids)
}

func cpuTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
