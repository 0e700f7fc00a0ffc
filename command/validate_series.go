package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/process"
)

// validateSeries tells how many series /metrics will have. File is what c was expanded from.
func validateSeries(
	ctx context.Context, clusters kafka.Clusters, file, c config.Config, list *checklist,
) {
	inputs := make([]string, len(c.Topics))
	for i, t := range c.Topics {
		inputs[i] = t.Input
	}
	if len(inputs) == 0 {
		return
	}
	details, err := kadm.NewClient(clusters.Input).ListTopics(ctx, inputs...)
	if err != nil {
		list.skip("the number of series in /metrics", err)
		return
	}
	brokers, err := brokersOf(ctx, clusters)
	if err != nil {
		list.skip("the number of series in /metrics", err)
		return
	}
	partitions := make(map[string]int)
	for _, d := range details {
		partitions[d.Topic] = len(d.Partitions)
	}
	series := process.CountSeries(file, c.Topics, partitions, brokers...)
	text := fmt.Sprintf("about %d series in /metrics of a process that has all partitions, %d a "+
		"topic", series.All, series.All/len(inputs))
	if len(series.Shared) > 0 {
		text += fmt.Sprintf("; the topics of %s share some (metrics.per_topic: %s)",
			strings.Join(series.Shared, ", "), file.Metrics.PerTopic)
	}
	list.check(text, nil)
}

// brokersOf is how many brokers each cluster has.
func brokersOf(ctx context.Context, clusters kafka.Clusters) (brokers []int, err error) {
	all := []*kgo.Client{clusters.Input}
	if clusters.Apart() {
		all = append(all, clusters.Output)
	}
	for _, client := range all {
		meta, err := kadm.NewClient(client).BrokerMetadata(ctx)
		if err != nil {
			return nil, err
		}
		brokers = append(brokers, len(meta.Brokers))
	}
	return brokers, nil
}
