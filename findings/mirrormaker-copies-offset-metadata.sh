#!/usr/bin/env bash
# MirrorMaker 2 of Apache Kafka 4.3.1 with sync.group.offsets.enabled=true, between two brokers.
#
# A consumer may leave a text beside each offset that it commits (metadata in OffsetCommit). One would guess that such a
# text stays where it was written: it is the application's own, and may speak of its cluster, while MirrorMaker
# translates the offsets from one log to the other.
# Seen: the group's offset appears on the other cluster, translated, with the very text of the first one. A program that
# takes its own text for a proof that it has been at work believes it there, where it has never been.
#
# Needs bash, Java 17, Maven and Go 1.24. Ends with 0 while it is so, and with 1 when that changes.
set -euo pipefail

work=$(mktemp -d)
children=()
cleanup() {
	for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
	for child in "${children[@]}"; do wait "$child" 2>/dev/null || true; done
	chmod -R u+w "$work" && rm -rf "$work"
}
trap cleanup EXIT
cd "$work"

cat >pom.xml <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>mirror</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.3.1</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-mirror</artifactId><version>4.3.1</version></dependency>
  </dependencies>
</project>
POM
mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory="$work/lib" >/dev/null

# start_broker NAME PORT CLUSTER
start_broker() {
	cat >"$1.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$(($2 + 1))
listeners=PLAINTEXT://127.0.0.1:$2,CONTROLLER://127.0.0.1:$(($2 + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$2
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.dirs=$work/$1
PROPERTIES
	java -cp "lib/*" kafka.tools.StorageTool format -t "$3" -c "$1.properties" >/dev/null 2>&1
	java -Xmx512m -cp "lib/*" kafka.Kafka "$1.properties" >"$1.log" 2>&1 &
	children+=($!)
}
start_broker here 39192 YWFhYWFhYWFhYWFhYWFhYQ
start_broker there 39292 YmJiYmJiYmJiYmJiYmJiYg

cat >mm2.properties <<'PROPERTIES'
clusters=here, there
here.bootstrap.servers=127.0.0.1:39192
there.bootstrap.servers=127.0.0.1:39292
here->there.enabled=true
there->here.enabled=false
topics=orders
groups=.*
replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy
replication.factor=1
offset-syncs.topic.replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
sync.group.offsets.enabled=true
sync.group.offsets.interval.seconds=1
emit.checkpoints.interval.seconds=1
refresh.groups.interval.seconds=1
refresh.topics.interval.seconds=1
PROPERTIES

cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	topic = "orders"
	group = "billing"
	text  = "written on the first cluster"
)

func admin(broker string) *kadm.Client {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(topic))
	if err != nil {
		log.Fatal(err)
	}
	return kadm.NewClient(client)
}

// again tries until it works or the time is over.
func again(ctx context.Context, what string, try func() bool) {
	for !try() {
		if ctx.Err() != nil {
			log.Fatalf("no %s", what)
		}
		time.Sleep(time.Second)
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if os.Args[1] == "write" {
		here := admin("127.0.0.1:39192")
		again(ctx, "topic", func() bool {
			created, err := here.CreateTopic(ctx, 1, 1, nil, topic)
			return err == nil && created.Err == nil
		})
		client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:39192"))
		if err != nil {
			log.Fatal(err)
		}
		defer client.Close()
		for range 10 {
			r := kgo.StringRecord("order")
			r.Topic = topic
			if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
				log.Fatal(err)
			}
		}
		offsets := make(kadm.Offsets)
		offsets.Add(kadm.Offset{Topic: topic, At: 10, LeaderEpoch: -1, Metadata: text})
		again(ctx, "commit", func() bool { return here.CommitAllOffsets(ctx, group, offsets) == nil })
		return
	}
	there := admin("127.0.0.1:39292")
	again(ctx, "offset on the other cluster", func() bool {
		offsets, err := there.FetchOffsets(ctx, group)
		if err != nil {
			return false
		}
		o, found := offsets.Lookup(topic, 0)
		if found && o.At > 0 {
			fmt.Printf("metadata %q\n", o.Metadata)
		}
		return found && o.At > 0
	})
}
GO
export GOPATH="$work/go" GOFLAGS=-modcacherw
go mod init example >/dev/null 2>&1
go get github.com/twmb/franz-go@v1.22.2 github.com/twmb/franz-go/pkg/kadm@v1.19.0 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
go run . write
java -Xmx512m -cp "lib/*" org.apache.kafka.connect.mirror.MirrorMaker mm2.properties >mm2.log 2>&1 &
children+=($!)

got=$(go run . read)
want='metadata "written on the first cluster"'
echo "$got"
if [[ $got != "$want" ]]; then
	echo "it has changed: it was: $want" >&2
	exit 1
fi
