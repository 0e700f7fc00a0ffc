package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/process"
)

// validateSeries tells how many series /metrics will have. File is what c was expanded from.
func validateSeries(
	ctx context.Context, client *kgo.Client, file, c config.Config, list *checklist,
) {
	inputs := make([]string, len(c.Topics))
	for i, t := range c.Topics {
		inputs[i] = t.Input
	}
	if len(inputs) == 0 {
		return
	}
	admin := kadm.NewClient(client)
	details, err := admin.ListTopics(ctx, inputs...)
	if err != nil {
		list.skip("the number of series in /metrics", err)
		return
	}
	meta, err := admin.BrokerMetadata(ctx)
	if err != nil {
		list.skip("the number of series in /metrics", err)
		return
	}
	partitions := make(map[string]int)
	for _, d := range details {
		partitions[d.Topic] = len(d.Partitions)
	}
	series := process.CountSeries(file, c.Topics, partitions, len(meta.Brokers))
	text := fmt.Sprintf("about %d series in /metrics of a process that has all partitions, %d a "+
		"topic", series.All, series.All/len(inputs))
	if len(series.Shared) > 0 {
		text += fmt.Sprintf("; the topics of %s share some (metrics.per_topic: %s)",
			strings.Join(series.Shared, ", "), file.Metrics.PerTopic)
	}
	list.check(text, nil)
}
