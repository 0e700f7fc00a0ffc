package main

import (
	"context"
	"encoding/json"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/idempotency"
)

// mail is an effect somewhere else, which no transaction of ours contains: each mail is a function
// that is run once per event. Only the one that is under way when the process dies is sent again,
// by the next reader of the event, after the lease; a provider that takes idempotency keys, given
// the event's ID, would notice even that.
func (c *consumer) mail(ctx context.Context, messages []dedup.Message) error {
	for _, m := range messages {
		id, _ := c.ids.Extract(m.Record) // ship has refused records without one
		key := idempotency.Key{Namespace: "order mails", ID: string(id)}
		_, err := c.once.Execute(ctx, key, idempotency.HashOf(m.Record.Value),
			func(ctx context.Context) ([]byte, error) {
				return nil, c.sendMail(ctx, m.Record.Value)
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// sendMail stands for a request to the provider of mail.
func (c *consumer) sendMail(ctx context.Context, payload []byte) error {
	var e event
	if err := json.Unmarshal(payload, &e); err != nil {
		return idempotency.Final(err)
	}
	_, err := c.pool.Exec(ctx, "INSERT INTO mails (order_id) VALUES ($1)", e.Order)
	return err
}
