package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/dedup/claimlog/kafkalog"
	"github.com/kdedup/kdedup/internal/testkit"
)

// BenchmarkRatioJudge judges batches of new IDs on the embedded store and on a claim log.
func BenchmarkRatioJudge(b *testing.B) {
	b.Run("embedded", func(b *testing.B) {
		judgeInTurns(b, openEmbedded(b, b.TempDir()), scopeNamed("orders"))
	})
	b.Run("claim log", func(b *testing.B) {
		scope := scopeNamed("orders")
		scope.ConsumerGroup = "api-" + strings.ToLower(rand.Text())
		judgeInTurns(b, openClaimLog(b, scope), scope)
	})
}

// openClaimLog is on the real broker.
func openClaimLog(b *testing.B, scope dedup.Scope) dedup.Store {
	brokers := testkit.Kafka(b)
	logs := kafkalog.New(kafkalog.Options{Connection: []kgo.Opt{kgo.SeedBrokers(brokers...)},
		Topic: kafkalog.GroupMark + ".claims"})
	admin := kadm.NewClient(testkit.KafkaClient(b, brokers))
	for _, topic := range logs.Topics(scope.ConsumerGroup, 1, scope.TTL) {
		values := make(map[string]*string)
		for _, s := range topic.Settings {
			values[s.Key] = &s.Value
		}
		if _, err := admin.CreateTopic(b.Context(), int32(topic.Partitions), 1, values,
			topic.Name); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			_, _ = admin.DeleteTopic(context.WithoutCancel(b.Context()), topic.Name)
		})
	}
	testkit.Eventually(b, time.Minute, "the topics", func() bool {
		return logs.Check(b.Context(), scope.ConsumerGroup, scope.TTL) == nil
	})
	store := claimlog.Open(claimlog.Options{Opener: logs, Path: b.TempDir()})
	b.Cleanup(func() { _ = store.Close() })
	return store
}

func judgeInTurns(b *testing.B, store dedup.Store, scope dedup.Scope) {
	if err := store.Register(b.Context(), scope); err != nil {
		b.Fatal(err)
	}
	deduper := dedup.New(scope, store, dedup.Options{Extractor: given{}})
	server := serve(b, Options{Store: store, Scopes: func(string) (dedup.Scope, bool) {
		return scope, true
	}})
	client := clientOf(b, server, connect.WithGRPC())
	next := 0
	inTurns(b, [2]func() error{
		func() error {
			records, messages := make([]kgo.Record, benchBatch), make([]dedup.Message, benchBatch)
			for i := range records {
				next++
				records[i] = kgo.Record{Topic: fmt.Sprintf("order-%012d", next),
					Value: make([]byte, 16)}
				messages[i] = dedup.Message{Record: &records[i], Owner: dedup.Coordinates{
					TopicID: [16]byte{1}, Offset: int64(next)}}
			}
			_, err := deduper.Judge(b.Context(), messages)
			return err
		},
		func() error {
			request := &kdedupv1.JudgeRequest{Scope: "orders"}
			for range benchBatch {
				next++
				request.Messages = append(request.Messages, &kdedupv1.Message{
					Id:    fmt.Sprintf("order-%012d", next),
					Place: at(int64(next)), Fingerprint: make([]byte, 16)})
			}
			_, err := client.Judge(b.Context(), connect.NewRequest(request))
			return err
		},
	})
}
