package client

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/brokers"
)

// withoutIdempotence returns what a producer needs on brokers that have no idempotent ones. Where
// they refuse a producer ID, the client would fail each record. Without one it sends a broker one
// request at a time, so that the order of records holds.
func withoutIdempotence(
	ctx context.Context, shared *kgo.Client, connection func() []kgo.Opt,
) ([]kgo.Opt, error) {
	client, end, err := asking(shared, connection)
	if err != nil {
		return nil, err
	}
	defer end()
	idempotent, err := brokers.Idempotent(ctx, client)
	if err != nil || idempotent {
		return nil, err
	}
	return []kgo.Opt{kgo.DisableIdempotentWrite()}, nil
}
