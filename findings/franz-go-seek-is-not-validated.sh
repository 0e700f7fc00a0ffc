#!/usr/bin/env bash
# franz-go 1.22.2 on Apache Kafka 4.3.1. A consumer has read a partition up to offset 20. Its leader dies, and a replica
# that has the log up to offset 10 is elected (unclean.leader.election.enable). Other records come there, up to offset
# 30. The consumer goes to where it was: offset 20, with the leader epoch of the last record that it has read.
#
# One would guess: a pair of offset and leader epoch is compared with the leader's log (KIP-320) wherever a client is
# given it, since that is what the epoch is for.
# Seen: given to a new client (ConsumePartitions, with Offset.WithEpoch) it is: ErrDataLoss is told, and the records from
# offset 10 on are read. Given to the client that has read them (SetOffsets, with EpochOffset.Epoch), it is not: nothing
# is told, and reading goes on at offset 20, past ten records that the client has never had. That the client had told
# the loss before, and had gone back by itself, does not matter.
#
# Needs bash, Java 17, Maven and Go 1.24 or later. Ends with 0 while it is so, and with 1 when that changes.
set -euo pipefail

work=$(mktemp -d)
declare -A brokers
cleanup() {
	for pid in "${brokers[@]}"; do kill -9 "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
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

start() { # the broker with a number; the first one is the controller
	java -Xmx400m -cp "lib/*" kafka.Kafka "$1.properties" >"$1.log" 2>&1 &
	brokers[$1]=$!
}
for node in 1 2 3; do
	roles=broker listeners="PLAINTEXT://127.0.0.1:3939$node"
	if [[ $node == 1 ]]; then roles=broker,controller listeners+=,CONTROLLER://127.0.0.1:39390; fi
	cat >"$node.properties" <<PROPERTIES
process.roles=$roles
node.id=$node
controller.quorum.voters=1@127.0.0.1:39390
listeners=$listeners
advertised.listeners=PLAINTEXT://127.0.0.1:3939$node
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
log.dirs=$work/data$node
PROPERTIES
	java -cp "lib/*" kafka.tools.StorageTool format -t YmJiYmJiYmJiYmJiYmJiYg -c "$node.properties" >/dev/null 2>&1
	start "$node"
done

cat >main.go <<'GO'
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	seed  = "127.0.0.1:39391"
	topic = "orders"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// tell has the script do something, and waits for it.
var answers = bufio.NewScanner(os.Stdin)

func tell(what string) {
	fmt.Println(what)
	answers.Scan()
}

// until waits for a state of the partition.
func until(ctx context.Context, admin *kadm.Client, ok func(kadm.PartitionDetail) bool) {
	for {
		details, err := admin.ListTopics(ctx, topic)
		if err == nil && ok(details[topic].Partitions[0]) {
			return
		}
		select {
		case <-ctx.Done():
			log.Fatal("the partition does not come to the state that was waited for")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func produce(ctx context.Context, n int) {
	client, err := kgo.NewClient(kgo.SeedBrokers(seed), kgo.DefaultProduceTopic(topic))
	must(err)
	defer client.Close()
	for range n {
		must(client.ProduceSync(ctx, kgo.StringRecord("record")).FirstErr())
	}
}

// read returns the first offset and the last record of n records, and whether a loss was told.
func read(ctx context.Context, client *kgo.Client, n int) (first int64, last *kgo.Record, lost bool) {
	first = -1
	for n > 0 && ctx.Err() == nil {
		fetches := client.PollRecords(ctx, n)
		fetches.EachError(func(_ string, _ int32, err error) {
			var loss *kgo.ErrDataLoss
			lost = lost || errors.As(err, &loss)
		})
		fetches.EachRecord(func(r *kgo.Record) {
			if first < 0 {
				first = r.Offset
			}
			last = r
			n--
		})
	}
	must(ctx.Err())
	return first, last, lost
}

func consumer(at kgo.Offset) *kgo.Client {
	client, err := kgo.NewClient(kgo.SeedBrokers(seed), kgo.ConsumePartitions(
		map[string]map[int32]kgo.Offset{topic: {0: at}}))
	must(err)
	return client
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(seed))
	must(err)
	defer client.Close()
	admin := kadm.NewClient(client)
	create := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	unclean := "true"
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, -1, -1
	t.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{2, 3}}}
	t.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "unclean.leader.election.enable", Value: &unclean}}
	create.Topics = append(create.Topics, t)
	for {
		created, err := create.RequestWith(ctx, client)
		if err == nil && created.Topics[0].ErrorCode == 0 {
			break
		}
		time.Sleep(time.Second)
	}
	until(ctx, admin, func(p kadm.PartitionDetail) bool { return p.Leader == 2 && len(p.ISR) == 2 })
	produce(ctx, 10)
	tell("kill 3")
	until(ctx, admin, func(p kadm.PartitionDetail) bool { return len(p.ISR) == 1 })
	produce(ctx, 10)

	reader := consumer(kgo.NewOffset().AtStart())
	defer reader.Close()
	_, last, _ := read(ctx, reader, 20)
	tell("kill 2")
	tell("start 3")
	until(ctx, admin, func(p kadm.PartitionDetail) bool { return p.Leader == 3 })
	produce(ctx, 20)
	first, _, lost := read(ctx, reader, 20)
	fmt.Printf("seen: it reads on at %d, a loss is told: %t\n", first, lost)

	fresh := consumer(kgo.NewOffset().At(last.Offset + 1).WithEpoch(last.LeaderEpoch))
	defer fresh.Close()
	first, _, lost = read(ctx, fresh, 10)
	fmt.Printf("seen: a new client that is given offset %d with its epoch reads on at %d, a loss is told: %t\n",
		last.Offset+1, first, lost)

	reader.SetOffsets(map[string]map[int32]kgo.EpochOffset{topic: {0: {Epoch: last.LeaderEpoch,
		Offset: last.Offset + 1}}})
	first, _, lost = read(ctx, reader, 10)
	fmt.Printf("seen: the client that is set to offset %d with its epoch reads on at %d, a loss is told: %t\n",
		last.Offset+1, first, lost)
	fmt.Println("end")
}
GO
export GOPATH="$work/go" GOFLAGS=-modcacherw
go mod init example >/dev/null 2>&1
go get github.com/twmb/franz-go@v1.22.2 github.com/twmb/franz-go/pkg/kadm@v1.19.0 \
	github.com/twmb/franz-go/pkg/kmsg@v1.15.0 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
go vet ./...
go build -o example .
coproc program { ./example; }
while read -r word rest <&"${program[0]}"; do
	case $word in
	kill)
		kill -9 "${brokers[$rest]}"
		wait "${brokers[$rest]}" 2>/dev/null || true
		unset "brokers[$rest]"
		echo done >&"${program[1]}"
		;;
	start)
		start "$rest"
		echo done >&"${program[1]}"
		;;
	seen:) echo "$rest" >>seen ;;
	end) break ;;
	esac
done

cat >expected <<'EXPECTED'
it reads on at 10, a loss is told: true
a new client that is given offset 20 with its epoch reads on at 10, a loss is told: true
the client that is set to offset 20 with its epoch reads on at 20, a loss is told: false
EXPECTED
cat seen
diff expected seen
