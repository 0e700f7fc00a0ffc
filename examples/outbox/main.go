// Outbox is an order service, the relay of its outbox, and a consumer of its events. However often
// they and kdedup are killed, every order is shipped once. See README.md beside this file.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
)

// place is where everything is; kdedup.yaml reads the same variables.
type place struct {
	kafka    string // of one broker
	postgres string // host:port
	shop     string // the database, and the beginning of the names of topics and groups
}

func (p place) topic() string      { return p.shop + ".orders" }
func (p place) cleanTopic() string { return p.shop + ".orders.clean" }
func (p place) group() string      { return p.shop + "-shipping" }

// connect returns a pool for a database. A password comes from PGPASSWORD.
func (p place) connect(ctx context.Context, database string) (*pgxpool.Pool, error) {
	return pgxpool.New(ctx, "postgres://postgres@"+p.postgres+"/"+database)
}

const usage = `usage: outbox COMMAND
  setup        create the database, its tables, and the topic of the relay
  orders [-n]  be the order service, for some orders
  relay        publish what is in the outbox, until a signal
  consumer     ship what is on the clean topic, until a signal
  check        wait until all is shipped, and compare
`

func main() {
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	flag.Parse()
	p := place{
		kafka:    cmp.Or(os.Getenv("KAFKA"), "127.0.0.1:9092"),
		postgres: cmp.Or(os.Getenv("POSTGRES"), "127.0.0.1:5432"),
		shop:     cmp.Or(os.Getenv("SHOP"), "shop"),
	}
	run, ok := map[string]func(context.Context, place) error{
		"setup": setup, "orders": placeOrders, "relay": relay, "consumer": consume, "check": check,
	}[flag.Arg(0)]
	if !ok {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, p); err != nil {
		slog.Error(flag.Arg(0), "error", err)
		os.Exit(1)
	}
}
