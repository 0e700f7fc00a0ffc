#!/usr/bin/env bash
# kafka-go 0.4.51 (github.com/segmentio/kafka-go), a Reader with IsolationLevel: ReadCommitted, against Apache Kafka
# 4.3.1. The topic has a record of a committed transaction, one of an aborted transaction, and one written without any.
#
# One would guess: "committed" and "plain" arrive, as they do with every Java consumer and with franz-go.
# Seen: "aborted" arrives, too, and so do the two markers that end the transactions, as messages of their own with a
# key and a value of a few bytes. The broker lists the aborted transactions in its answer, and the reader does not look
# at the list.
#
# Needs bash, Java 17, Maven and Go 1.24. Ends with 0 while it is so, and with 1 when that changes.
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
controller.quorum.voters=1@127.0.0.1:39093
listeners=PLAINTEXT://127.0.0.1:39092,CONTROLLER://127.0.0.1:39093
advertised.listeners=PLAINTEXT://127.0.0.1:39092
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.dirs=$work/data
PROPERTIES
java -cp "lib/*" kafka.tools.StorageTool format -t YWFhYWFhYWFhYWFhYWFhYQ -c server.properties >/dev/null 2>&1
java -Xmx512m -cp "lib/*" kafka.Kafka server.properties >broker.log 2>&1 &
broker=$!

cat >main.go <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	broker = "127.0.0.1:39092"
	topic  = "orders"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func write(ctx context.Context) {
	plain, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(topic))
	must(err)
	defer plain.Close()
	for {
		created, err := kadm.NewClient(plain).CreateTopic(ctx, 1, 1, nil, topic)
		if err == nil && created.Err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	txn, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(topic),
		kgo.TransactionalID("example"))
	must(err)
	defer txn.Close()
	for _, text := range []string{"committed", "aborted"} {
		must(txn.BeginTransaction())
		must(txn.ProduceSync(ctx, kgo.StringRecord(text)).FirstErr())
		must(txn.EndTransaction(ctx, kgo.TransactionEndTry(text == "committed")))
	}
	must(plain.ProduceSync(ctx, kgo.StringRecord("plain")).FirstErr())
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	write(ctx)
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{broker}, Topic: topic, Partition: 0,
		IsolationLevel: kafka.ReadCommitted, MaxWait: time.Second})
	defer r.Close()
	for {
		reading, stop := context.WithTimeout(ctx, 10*time.Second)
		m, err := r.ReadMessage(reading)
		stop()
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
		must(err)
		if text := string(m.Value); text == "committed" || text == "aborted" || text == "plain" {
			fmt.Println(m.Offset, text)
		} else {
			fmt.Println(m.Offset, "marker")
		}
		if string(m.Value) == "plain" {
			return
		}
	}
}
GO
export GOPATH="$work/go" GOFLAGS=-modcacherw
go mod init example >/dev/null 2>&1
go get github.com/segmentio/kafka-go@v0.4.51 github.com/twmb/franz-go@v1.22.2 github.com/twmb/franz-go/pkg/kadm@v1.19.0 \
	>/dev/null 2>&1
go mod tidy >/dev/null 2>&1

got=$(go run .)
want="0 committed
1 marker
2 aborted
3 marker
4 plain"
echo "$got"
if [[ $got != "$want" ]]; then
	echo "it has changed: it was" >&2
	echo "$want" >&2
	exit 1
fi
