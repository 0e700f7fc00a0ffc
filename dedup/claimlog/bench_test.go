package claimlog

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// BenchmarkClaim is the part of a claim that is not the log's: making blocks, applying them to an
// index in files, and the look-ups of both. Two lanes claim at once.
func BenchmarkClaim(b *testing.B) {
	const size, shards = 20_000, 8
	scope := dedup.Scope{ConsumerGroup: "group", Name: "bench", TTL: time.Hour, Buckets: 1}
	for _, known := range []int{0, size / 10} {
		b.Run(fmt.Sprintf("known=%d%%", known*100/size), func(b *testing.B) {
			s := Open(Options{Opener: newFakeLogs(shards), Path: b.TempDir(), Logger: quietLog})
			defer s.Close()
			if err := s.Register(b.Context(), scope); err != nil {
				b.Fatal(err)
			}
			var next atomic.Int64
			b.SetParallelism(1)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					from := int(next.Add(size))
					batch := append(numbered(from, size-known),
						numbered(max(0, from-20*size), known)...)
					if _, err := s.Claim(context.Background(), scope, batch); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)*size/b.Elapsed().Seconds(), "claims/s")
		})
	}
}

// numbered are claims of textual UUIDs.
func numbered(from, n int) []dedup.Claim {
	claims := make([]dedup.Claim, n)
	for i := range claims {
		var id [16]byte
		binary.BigEndian.PutUint64(id[:], uint64(from+i)*0x9e3779b97f4a7c15)
		claims[i] = dedup.Claim{
			ID: dedup.ID(fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10],
				id[10:])),
			Owner: dedup.Coordinates{TopicID: [16]byte{1}, Partition: int32(i % 8),
				Offset: int64(from + i)},
			Fingerprint: dedup.Fingerprint{byte(i), byte(i >> 8)},
		}
	}
	return claims
}
