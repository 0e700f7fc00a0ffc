package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// event tells of an order.
type event struct {
	Order int64  `json:"order"`
	Item  string `json:"item"`
}

// placeOrders is the order service.
func placeOrders(ctx context.Context, p place) error {
	flags := flag.NewFlagSet("orders", flag.ExitOnError)
	n := flags.Int("n", 500, "how many orders")
	_ = flags.Parse(flag.Args()[1:]) // it exits
	pool, err := p.connect(ctx, p.shop)
	if err != nil {
		return err
	}
	defer pool.Close()
	items := []string{"teapot", "kettle", "cup"}
	for i := range *n {
		if err := placeOrder(ctx, pool, items[i%len(items)]); err != nil {
			return fmt.Errorf("order %d of %d: %w", i+1, *n, err)
		}
	}
	fmt.Printf("placed %d orders\n", *n)
	return nil
}

// placeOrder writes the order and its event in one transaction. To write the one and then send the
// other could lose an event, or tell of an order that was never placed.
func placeOrder(ctx context.Context, pool *pgxpool.Pool, item string) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		e := event{Item: item}
		if err := tx.QueryRow(
			ctx, "INSERT INTO orders (item) VALUES ($1) RETURNING id", item,
		).Scan(&e.Order); err != nil {
			return err
		}
		payload, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO outbox (order_id, payload) VALUES ($1, $2)", e.Order,
			string(payload))
		return err
	})
}
