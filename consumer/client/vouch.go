package client

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/brokers"
)

// A mark stands beside each offset that kdedup commits, in the text that Kafka keeps with it. What
// another program has committed, or an operator has set, does not have it: records below such an
// offset were handled by nobody that wrote a fence.
//
// Others copy offsets with their texts: MirrorMaker to another cluster, tools that save and restore
// them to another group or topic. So a mark names its place, and is worth nothing at another one.
// Marks of earlier versions name none, and versions before those committed without a mark.

const (
	markPrefix  = "kdedup:2 "
	hintPrefix  = "kdedup:hint " // beside hints, which vouch for nothing
	earlierMark = "kdedup:1"
)

// place is where a group's offsets are. What the brokers do not tell is zero.
type place struct {
	cluster string
	topicID [16]byte // of the input
	group   string
}

func (g Group) place(ctx context.Context, admin *kadm.Client) (place, error) {
	return placeOf(ctx, admin, g.logs(admin), g.Name, g.Input)
}

// placeOf asks the cluster that has the group, and the one that has the input.
func placeOf(
	ctx context.Context, admin, logs *kadm.Client, group, input string,
) (place, error) {
	inputs, err := logs.Metadata(ctx, input)
	meta := inputs
	if err == nil && logs != admin { // where the user may have no right on that topic's name
		meta, err = admin.BrokerMetadata(ctx)
	}
	if err != nil {
		return place{}, fmt.Errorf("ask for the IDs of the cluster and of %s: %w", input, err)
	}
	return place{meta.Cluster, inputs.Topics[input].ID, group}, nil
}

// located asks where the offsets are that a new client commits. It closes one that cannot ask.
func located(ctx context.Context) func(*Client, error) (*Client, error) {
	return func(c *Client, err error) (*Client, error) {
		if err != nil {
			return nil, err
		}
		if c.here, err = placeOf(ctx, c.admin, c.logs, c.opts.ConsumerGroup,
			c.opts.Input); err != nil {
			brokers.Leave(c.kafka)
			return nil, err
		}
		return c, nil
	}
}

// unknown stands for a cluster that tells no ID.
const unknown = "-"

func (p place) mark() string {
	cluster := p.cluster
	if cluster == "" {
		cluster = unknown
	}
	return markPrefix + cluster + " " + hex.EncodeToString(p.topicID[:]) + " " + p.group
}

// hint is the text beside a hint.
func (p place) hint() string { return hintPrefix + strings.TrimPrefix(p.mark(), markPrefix) }

// vouches reports whether a text beside an offset is a mark that was made here. What is not known
// of one of the places is taken for the same.
func (p place) vouches(text string) bool {
	cluster, rest, _ := strings.Cut(strings.TrimPrefix(text, markPrefix), " ")
	topic, group, whole := strings.Cut(rest, " ")
	var id [16]byte
	if n, err := hex.Decode(id[:], []byte(topic[:min(len(topic), 2*len(id))])); err != nil ||
		n != len(id) || len(topic) != 2*n {
		return false
	}
	return marked(text) && whole && group == p.group && fence.SameTopic(id, p.topicID) &&
		(cluster == p.cluster || cluster == unknown || p.cluster == "")
}

// marked reports whether a text is a mark that names its place.
func marked(text string) bool { return strings.HasPrefix(text, markPrefix) }

// marking has a commit of the client carry a mark.
func marking(ctx context.Context, mark string) context.Context {
	return kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		for i := range req.Topics {
			for j := range req.Topics[i].Partitions {
				req.Topics[i].Partitions[j].Metadata = kmsg.StringPtr(mark)
			}
		}
		return nil
	})
}
