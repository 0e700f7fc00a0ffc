package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/process/server"
)

// clusterPatience leaves the checks that follow half of the time that /readyz has.
const clusterPatience = time.Second

// clusterIDs are those that the clusters have told.
type clusterIDs struct{ input, output atomic.Pointer[string] }

// clusterChecks ask a broker of each of two clusters, both at once: the one that is away must not
// take the time of the other. Of one cluster the lanes tell enough.
func (p *running) clusterChecks() []server.Check {
	if !p.clusters.Apart() {
		return nil
	}
	asked := sync.OnceValue(func() (errs [2]error) {
		ctx, cancel := context.WithTimeout(context.Background(), clusterPatience)
		defer cancel()
		var both sync.WaitGroup
		both.Go(func() {
			errs[0] = p.askCluster(ctx, server.ClusterInput)
		})
		both.Go(func() {
			errs[1] = p.askCluster(ctx, server.ClusterOutput)
		})
		both.Wait()
		return errs
	})
	return []server.Check{
		{Name: server.ClusterCheck(server.ClusterInput),
			Func: func(context.Context) error { return asked()[0] }},
		{Name: server.ClusterCheck(server.ClusterOutput),
			Func: func(context.Context) error { return asked()[1] }},
	}
}

func (p *running) askCluster(ctx context.Context, name string) error {
	client, setting, id := p.clusters.Input, "kafka.brokers", &p.clusterIDs.input
	if name == server.ClusterOutput {
		client, setting, id = p.clusters.Output, "kafka.output.brokers", &p.clusterIDs.output
	}
	var answer kadm.Metadata
	err := client.Ping(ctx) // which may be what the client remembers, and asks no broker
	start := time.Now()
	if err == nil {
		answer, err = kadm.NewClient(client).BrokerMetadata(ctx)
	}
	p.families.clusters.Asked(name, time.Since(start), err)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: no broker has answered within %s", setting, clusterPatience)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", setting, err)
	}
	id.Store(&answer.Cluster)
	return nil
}

// clustersNow tells of two clusters what lies where.
func (p *Process) clustersNow(c config.Config) []server.Cluster {
	if !c.Kafka.Output.Apart() {
		return nil
	}
	all := []server.Cluster{
		{Name: server.ClusterInput, Addresses: c.Kafka.Brokers, ID: idOf(&p.clusterIDs.input)},
		{Name: server.ClusterOutput, Addresses: c.Kafka.Output.Brokers,
			ID: idOf(&p.clusterIDs.output)},
	}
	add := func(output bool, topic string) {
		at := &all[0]
		if output {
			at = &all[1]
		}
		if topic != "" && !slices.Contains(at.Topics, topic) {
			at.Topics = append(at.Topics, topic)
		}
	}
	for _, t := range c.Topics {
		add(false, t.Input)
		for _, topic := range []string{t.Output, t.DuplicatesTopic, t.DeadLetterTopic} {
			add(true, topic)
		}
		add(t.Delivery == config.DeliveryExactlyOnce, t.FenceTopic) // with its transactions
	}
	for _, topic := range connect.ClaimTopics(c) {
		add(c.Store.Kafka.Cluster == config.ClusterOutput, topic)
	}
	return all
}

func idOf(id *atomic.Pointer[string]) string {
	if text := id.Load(); text != nil {
		return *text
	}
	return ""
}
