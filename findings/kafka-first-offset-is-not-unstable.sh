#!/usr/bin/env bash
# Apache Kafka 4.3.1, asked by franz-go 1.22.2. A transaction sends the first offset that a consumer group ever has for
# a partition, and is still open. Somebody asks for the group's stable offsets (OffsetFetch with require_stable, KIP-447)
# to go on where the group is.
#
# One would guess: the answer is UNSTABLE_OFFSET_COMMIT, whether the question names the partition or asks for all that
# the group has, since the offset may become visible at any moment.
# Seen: named, the partition is unstable. Not named, it is not in the answer, as if the group had never been there; once
# it has an older offset it is unstable either way. kadm's FetchOffsetsForTopics asks for all, also with RequireStable,
# and fills in "no offset".
#
# Needs bash, Java 17, Maven and Go 1.24 or later. Ends with 0 while it is so, and with 1 when that changes.
set -euo pipefail

work=$(mktemp -d)
broker=
cleanup() {
	if [[ -n $broker ]]; then kill "$broker" 2>/dev/null || true; wait "$broker" 2>/dev/null || true; fi
	chmod -R u+w "$work" && rm -rf "$work"
}
trap cleanup EXIT
cd "$work"

cat >pom.xml <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>broker</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.3.1</version></dependency>
  </dependencies>
</project>
POM
mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory="$work/lib" >/dev/null

cat >server.properties <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:39293
listeners=PLAINTEXT://127.0.0.1:39292,CONTROLLER://127.0.0.1:39293
advertised.listeners=PLAINTEXT://127.0.0.1:39292
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.dirs=$work/data
PROPERTIES
java -cp "lib/*" kafka.tools.StorageTool format -t YmJiYmJiYmJiYmJiYmJiYg -c server.properties >/dev/null 2>&1
java -Xmx512m -cp "lib/*" kafka.Kafka server.properties >broker.log 2>&1 &
broker=$!

cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	broker = "127.0.0.1:39292"
	topic  = "orders"
	group  = "readers"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// ask says what the group's stable offsets are: of the partition, or of all that the group has.
func ask(ctx context.Context, client *kgo.Client, named bool) string {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	if named {
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.Partitions = topic, []int32{0}
		g.Topics = append(g.Topics, t)
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Groups, req.RequireStable = append(req.Groups, g), true
	answer, err := req.RequestWith(ctx, client)
	must(err)
	must(kerr.ErrorForCode(answer.Groups[0].ErrorCode))
	for _, t := range answer.Groups[0].Topics {
		for _, p := range t.Partitions {
			if err := kerr.TypedErrorForCode(p.ErrorCode); err != nil {
				return err.Message
			}
			return fmt.Sprint(p.Offset)
		}
	}
	return "no partition"
}

// send puts an offset of the group into the transaction of the producer.
func send(ctx context.Context, client *kgo.Client, offset int64) {
	id, epoch, err := client.ProducerID(ctx)
	must(err)
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = "example", id, epoch, group
	added, err := add.RequestWith(ctx, client)
	must(err)
	must(kerr.ErrorForCode(added.ErrorCode))
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.Group, commit.ProducerID, commit.ProducerEpoch = "example", group, id, epoch
	commit.Generation = -1
	t, p := kmsg.NewTxnOffsetCommitRequestTopic(), kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Offset = offset
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	commit.Topics = append(commit.Topics, t)
	committed, err := commit.RequestWith(ctx, client)
	must(err)
	must(kerr.ErrorForCode(committed.Topics[0].Partitions[0].ErrorCode))
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(topic),
		kgo.TransactionalID("example"))
	must(err)
	defer client.Close()
	admin := kadm.NewClient(client)
	for {
		created, err := admin.CreateTopic(ctx, 1, 1, nil, topic)
		if err == nil && created.Err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	must(client.BeginTransaction())
	must(client.ProduceSync(ctx, kgo.StringRecord("one")).FirstErr())
	send(ctx, client, 7)
	fmt.Println("first offset, named:", ask(ctx, client, true))
	fmt.Println("first offset, all:", ask(ctx, client, false))
	filled, err := admin.FetchOffsetsForTopics(kadm.RequireStable(ctx), group, topic)
	must(err)
	at, _ := filled.Lookup(topic, 0)
	fmt.Println("first offset, FetchOffsetsForTopics:", at.At)
	must(client.EndTransaction(ctx, kgo.TryCommit))
	for ask(ctx, client, true) != "7" {
		time.Sleep(100 * time.Millisecond)
	}
	must(client.BeginTransaction())
	must(client.ProduceSync(ctx, kgo.StringRecord("two")).FirstErr())
	send(ctx, client, 8)
	fmt.Println("second offset, named:", ask(ctx, client, true))
	fmt.Println("second offset, all:", ask(ctx, client, false))
	must(client.EndTransaction(ctx, kgo.TryAbort))
}
GO
export GOPATH="$work/go" GOFLAGS=-modcacherw
go mod init example >/dev/null 2>&1
go get github.com/twmb/franz-go@v1.22.2 github.com/twmb/franz-go/pkg/kadm@v1.19.0 \
	github.com/twmb/franz-go/pkg/kmsg@v1.15.0 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
go run . >seen


cat >expected <<'EXPECTED'
first offset, named: UNSTABLE_OFFSET_COMMIT
first offset, all: no partition
first offset, FetchOffsetsForTopics: -1
second offset, named: UNSTABLE_OFFSET_COMMIT
second offset, all: UNSTABLE_OFFSET_COMMIT
EXPECTED
cat seen
diff expected seen
