package api

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/api/kdedup/v1/kdedupv1connect"
	"github.com/kdedup/kdedup/idempotency"
)

// These compare the API with the Go package in one run, in turns: on a machine that does other work
// only such ratios mean something.

// inTurns runs two ways of the same and tells their medians and the ratio.
func inTurns(b *testing.B, ways [2]func() error) {
	var took [2][]time.Duration
	for b.Loop() {
		for i, way := range ways {
			began := time.Now()
			if err := way(); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	inProcess, overAPI := took[0][len(took[0])/2], took[1][len(took[1])/2]
	b.ReportMetric(inProcess.Seconds()*1000, "ms-package")
	b.ReportMetric(overAPI.Seconds()*1000, "ms-api")
	b.ReportMetric(overAPI.Seconds()/inProcess.Seconds(), "api/package")
	b.ReportMetric(0, "ns/op")
}

// doors are two ways to the API: gRPC, and what a plain client has, JSON over HTTP/1.1.
func doors(b *testing.B, run func(*testing.B, [2]func() error)) {
	b.Run("gRPC", func(b *testing.B) {
		run(b, executions(b, clearText(b), connect.WithGRPC()))
	})
	b.Run("JSON", func(b *testing.B) {
		transport := &http.Transport{MaxIdleConnsPerHost: 100}
		b.Cleanup(transport.CloseIdleConnections)
		run(b, executions(b, &http.Client{Transport: transport}, connect.WithProtoJSON()))
	})
}

// executions are Begin and Complete of a key, by the package and through the API.
func executions(
	b *testing.B, through *http.Client, door connect.ClientOption,
) [2]func() error {
	store, err := openKeys(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	executor, err := idempotency.New(store, idempotency.Options{Wait: idempotency.NoWait})
	if err != nil {
		b.Fatal(err)
	}
	server, _ := inMemory(b, Options{Keys: store}, "orders")
	client := kdedupv1connect.NewIdempotencyServiceClient(through, server.URL(), door)
	var next atomic.Int64
	return [2]func() error{
		func() error {
			key := idempotency.Key{Namespace: "orders", ID: fmt.Sprint(next.Add(1))}
			hold, _, _, err := executor.Begin(b.Context(), key, idempotency.Hash{},
				idempotency.Terms{})
			if err != nil {
				return err
			}
			return executor.Complete(b.Context(), key, hold, []byte("receipt"))
		},
		func() error {
			key := fmt.Sprint(next.Add(1))
			r, err := client.Begin(b.Context(), connect.NewRequest(&kdedupv1.BeginRequest{
				Scope: "orders", Key: key, RequestHash: make([]byte, 32)}))
			if err != nil {
				return err
			}
			return complete(b, client, key, r.Msg.GetAcquired().GetLease(), "receipt")
		},
	}
}

// BenchmarkRatioExecute has one caller.
func BenchmarkRatioExecute(b *testing.B) { doors(b, inTurns) }

// BenchmarkRatioExecuteOf64 has 64 callers, each of whom executes ten keys in a turn.
func BenchmarkRatioExecuteOf64(b *testing.B) { doors(b, by64) }

func by64(b *testing.B, ways [2]func() error) {
	const callers, each = 64, 10
	turn := func(way func() error) func() error {
		return func() (failed error) {
			var all sync.WaitGroup
			errs := make(chan error, callers*each)
			for range callers {
				all.Go(func() {
					for range each {
						if err := way(); err != nil {
							errs <- err
						}
					}
				})
			}
			all.Wait()
			close(errs)
			return <-errs
		}
	}
	var took [2]time.Duration
	for b.Loop() {
		for i, way := range ways {
			began := time.Now()
			if err := turn(way)(); err != nil {
				b.Fatal(err)
			}
			took[i] += time.Since(began)
		}
	}
	perSecond := func(i int) float64 {
		return float64(b.N) * callers * each / took[i].Seconds()
	}
	b.ReportMetric(perSecond(0), "package/s")
	b.ReportMetric(perSecond(1), "api/s")
	b.ReportMetric(perSecond(1)/perSecond(0), "api/package")
	b.ReportMetric(0, "ns/op")
}
