package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// tally is what became of the orders.
type tally struct {
	Orders, Waiting        int // of which some are in the outbox
	Once, Missing, Twice   int // shipped
	Mailed, MailedTooOften int // orders
}

const tallySQL = `
SELECT count(*), (SELECT count(*) FROM outbox),
	count(*) FILTER (WHERE shipped = 1), count(*) FILTER (WHERE shipped = 0), count(*) FILTER (WHERE shipped > 1),
	count(*) FILTER (WHERE mailed > 0), count(*) FILTER (WHERE mailed > 1)
FROM (SELECT (SELECT count(*) FROM shipments WHERE order_id = o.id) AS shipped,
	(SELECT count(*) FROM mails WHERE order_id = o.id) AS mailed FROM orders o) AS each`

// check waits until every order was shipped and mailed, and prints what it found.
func check(ctx context.Context, p place) error {
	pool, err := p.connect(ctx, p.shop)
	if err != nil {
		return err
	}
	defer pool.Close()
	for {
		rows, err := pool.Query(ctx, tallySQL)
		if err != nil {
			return err
		}
		t, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[tally])
		if err != nil {
			return err
		}
		if t.Waiting == 0 && t.Missing == 0 && t.Mailed == t.Orders {
			fmt.Printf("%d orders: %d shipped once, %d twice; %d mailed\n", t.Orders, t.Once,
				t.Twice, t.Mailed)
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return fmt.Errorf("%+v: %w", t, context.Cause(ctx))
		}
	}
}
