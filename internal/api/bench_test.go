package api

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/twmb/franz-go/pkg/kgo"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/idempotency"
)

const benchBatch = 1000

// BenchmarkJudge compares the API over gRPC on loopback with the Go package, in new claims, on one
// embedded store.
func BenchmarkJudge(b *testing.B) {
	store := openEmbedded(b, b.TempDir())
	scope := scopeNamed("orders")
	if err := store.Register(b.Context(), scope); err != nil {
		b.Fatal(err)
	}
	perSecond := func(b *testing.B) {
		b.ReportMetric(float64(b.N)*benchBatch/b.Elapsed().Seconds(), "claims/s")
	}
	next := 0
	b.Run("deduper", func(b *testing.B) {
		deduper := dedup.New(scope, store, dedup.Options{Extractor: given{}})
		records, messages := make([]kgo.Record, benchBatch), make([]dedup.Message, benchBatch)
		fingerprint := make([]byte, 16)
		for b.Loop() {
			for i := range records {
				next++
				records[i] = kgo.Record{Topic: fmt.Sprintf("order-%012d", next),
					Value: fingerprint}
				messages[i] = dedup.Message{Record: &records[i], Owner: dedup.Coordinates{
					TopicID: [16]byte{1}, Offset: int64(next)}}
			}
			if _, err := deduper.Judge(b.Context(), messages); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b)
	})
	b.Run("api", func(b *testing.B) {
		server := serve(b, Options{Store: store, Scopes: func(string) (dedup.Scope, bool) {
			return scope, true
		}})
		client := clientOf(b, server, connect.WithGRPC())
		request := &kdedupv1.JudgeRequest{Scope: "orders"}
		for range benchBatch {
			request.Messages = append(request.Messages, &kdedupv1.Message{
				Place: at(0), Fingerprint: make([]byte, 16)})
		}
		for b.Loop() {
			for _, m := range request.Messages {
				next++
				m.Id = fmt.Sprintf("order-%012d", next)
				m.GetPlace().GetRecord().Offset = int64(next)
			}
			if _, err := client.Judge(b.Context(), connect.NewRequest(request)); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b)
	})
}

// BenchmarkExecute compares Begin and Complete over gRPC with the Go package, on one embedded
// store.
func BenchmarkExecute(b *testing.B) {
	store, err := openKeys(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	next := 0
	b.Run("package", func(b *testing.B) {
		executor, err := idempotency.New(store, idempotency.Options{Wait: idempotency.NoWait})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			next++
			key := idempotency.Key{Namespace: "orders", ID: fmt.Sprint(next)}
			hold, _, _, err := executor.Begin(b.Context(), key, idempotency.Hash{},
				idempotency.Terms{})
			if err == nil {
				err = executor.Complete(b.Context(), key, hold, []byte("receipt"))
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("api", func(b *testing.B) {
		server, _ := inMemory(b, Options{Keys: store}, "orders")
		client := keysOf(b, server.URL(), connect.WithGRPC())
		for b.Loop() {
			next++
			key := fmt.Sprint(next)
			held := begin(b, client, &kdedupv1.BeginRequest{Key: key}).GetAcquired()
			if err := complete(b, client, key, held.GetLease(), "receipt"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("package, 64 callers", func(b *testing.B) {
		executor, err := idempotency.New(store, idempotency.Options{Wait: idempotency.NoWait})
		if err != nil {
			b.Fatal(err)
		}
		b.SetParallelism(64 / runtime.GOMAXPROCS(0))
		b.RunParallel(func(p *testing.PB) {
			prefix := time.Now().UnixNano()
			for n := 0; p.Next(); n++ {
				key := idempotency.Key{Namespace: "orders",
					ID: fmt.Sprintf("%p-%d-%d", p, prefix, n)}
				hold, _, _, err := executor.Begin(b.Context(), key, idempotency.Hash{},
					idempotency.Terms{})
				if err == nil {
					err = executor.Complete(b.Context(), key, hold, []byte("receipt"))
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "executions/s")
	})
	b.Run("api, 64 callers", func(b *testing.B) {
		server, _ := inMemory(b, Options{Keys: store}, "orders")
		client := keysOf(b, server.URL(), connect.WithGRPC())
		b.SetParallelism(64 / runtime.GOMAXPROCS(0))
		b.RunParallel(func(p *testing.PB) {
			prefix := time.Now().UnixNano()
			for n := 0; p.Next(); n++ {
				key := fmt.Sprintf("%p-%d-%d", p, prefix, n)
				held := begin(b, client, &kdedupv1.BeginRequest{Key: key}).GetAcquired()
				if err := complete(b, client, key, held.GetLease(), "receipt"); err != nil {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "executions/s")
	})
}
