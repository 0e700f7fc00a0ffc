package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/consumer/client"
)

// SeesNewTopics is for a client that makes topics, or looks for those that others make. The default
// is to answer from memory for 5 s, which is how long each new topic would take to be seen.
var SeesNewTopics = kgo.MetadataMinAge(50 * time.Millisecond)

// Setup creates the tables and topics that are missing, and says what it did.
func Setup(
	ctx context.Context, c config.Config, log *slog.Logger, dryRun bool, say func(string),
) (err error) {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	if err := driverOf(c.Store).setup(ctx, c, log, dryRun, say); err != nil {
		return err
	}
	if err := setupAPIKeys(ctx, c, log, dryRun, say); err != nil {
		return err
	}
	if len(c.Topics) == 0 { // an API alone needs none in Kafka
		return nil
	}
	servers := NewServers(c, log, SeesNewTopics)
	defer func() { err = errors.Join(err, servers.Close()) }()
	clusters, err := servers.Clusters(ctx)
	if err != nil {
		return err
	}
	if dryRun {
		if err := kafka.CheckCollisions(ctx, clusters, c.Topics, ClaimTopics(c)); err != nil {
			return err
		}
	}
	if err := setupEntries(ctx, clusters, c, dryRun, say); err != nil {
		return err
	}
	if err := SetupClaimLogs(ctx, clusters, c, log, dryRun, say); err != nil {
		return err
	}
	sayIDs(ctx, servers, c.Topics, say)
	if dryRun {
		return nil
	}
	sayUnclaimed(ctx, servers, clusters, c.Topics, say)
	return Each(Entries(c.Topics), func(e *Entry) error {
		return CompareTopics(ctx, clusters, e.Topic, true, say)
	})
}

func setupEntries(
	ctx context.Context, clusters kafka.Clusters, c config.Config, dryRun bool, say func(string),
) error {
	transactions := newDeliveries(clusters, c)
	var problems []error
	for _, e := range Entries(c.Topics) {
		problems = append(problems, transactions.setUp(ctx, e, dryRun, say))
	}
	return errors.Join(problems...)
}

// sayIDs tells how many of the newest records have a message ID. The user of setup may not be
// allowed to read them.
func sayIDs(ctx context.Context, servers *Servers, topics []config.Topic, say func(string)) {
	for _, e := range Entries(topics) {
		n, err := servers.LookAtNewest(ctx, &e)
		if err != nil {
			say(fmt.Sprintf("message_id of %s: not looked at: %v", e.Input, err))
			continue
		}
		say(n.String())
	}
}

// AdoptOffsets makes offsets that run refuses kdedup's own: the operator says that what lies below
// them is not to be forwarded.
func AdoptOffsets(
	ctx context.Context, c config.Config, log *slog.Logger, dryRun bool, say func(string),
) (err error) {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	servers := NewServers(c, log, client.Writes()...)
	defer func() { err = errors.Join(err, servers.Close()) }()
	clusters, err := servers.Clusters(ctx)
	if err != nil {
		return err
	}
	return Each(Entries(c.Topics), func(e *Entry) error {
		group, at := GroupAt(clusters, e.Topic)
		return group.Adopt(ctx, at, dryRun, say)
	})
}
