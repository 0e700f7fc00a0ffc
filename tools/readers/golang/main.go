// Command golang reads partition 0 of a topic with one of Go's clients: CLIENT BROKER TOPIC
// ISOLATION. It prints the client's version and then each value, up to END.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"runtime/debug"
	"time"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

// silence ends the reading: what does not come within it never does.
const silence = 10 * time.Second

var errSilent = errors.New("nothing came for a while")

func main() {
	client, broker, topic := os.Args[1], os.Args[2], os.Args[3]
	committed := os.Args[4] == "committed"
	read := map[string]func(broker, topic string, committed bool) error{
		"franz-go": franz, "sarama": byIBM, "kafka-go": segmentio}[client]
	fmt.Println(version(client))
	if err := read(broker, topic, committed); err != nil {
		log.Fatal(err)
	}
}

func version(client string) string {
	module := map[string]string{"franz-go": "github.com/twmb/franz-go",
		"sarama": "github.com/IBM/sarama", "kafka-go": "github.com/segmentio/kafka-go"}[client]
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return "?"
}

// show reports whether it was the last one.
func show(value []byte) bool {
	fmt.Printf("%q\n", value)
	return string(value) == "END"
}

func franz(broker, topic string, committed bool) error {
	options := []kgo.Opt{kgo.SeedBrokers(broker), kgo.ConsumePartitions(
		map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}})}
	if committed {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), silence)
		fetches := client.PollFetches(ctx)
		cancel()
		if err := fetches.Err0(); errors.Is(err, context.DeadlineExceeded) {
			return errSilent
		} else if err != nil {
			return err
		}
		for _, r := range fetches.Records() {
			if show(r.Value) {
				return nil
			}
		}
	}
}

func byIBM(broker, topic string, committed bool) error {
	c := sarama.NewConfig()
	if c.Consumer.Return.Errors = true; committed {
		c.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer, err := sarama.NewConsumer([]string{broker}, c)
	if err != nil {
		return err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	for {
		select {
		case m := <-partition.Messages():
			if show(m.Value) {
				return nil
			}
		case err := <-partition.Errors():
			return err
		case <-time.After(silence):
			return errSilent
		}
	}
}

func segmentio(broker, topic string, committed bool) error {
	c := kafka.ReaderConfig{Brokers: []string{broker}, Topic: topic}
	if committed {
		c.IsolationLevel = kafka.ReadCommitted
	}
	r := kafka.NewReader(c)
	defer r.Close()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), silence)
		m, err := r.ReadMessage(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return errSilent
		} else if err != nil {
			return err
		}
		if show(m.Value) {
			return nil
		}
	}
}
