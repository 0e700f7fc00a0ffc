// Uniquestore keeps objects of which no two have the same content: to put one that is there returns
// the ID of the first. See README.md beside this file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/idempotency/embedded"
	"github.com/kdedup/kdedup/idempotency/postgres"
)

const usage = `usage: uniquestore [flags] put <CONTENT    store what is on standard input, print its ID
       uniquestore [flags] get ID          print an object
`

// settings are the command line.
type settings struct {
	data     string        // directory
	postgres string        // URL of the database with the checksums; "": files in data
	lease    time.Duration // after which a put that died is taken over
}

func main() {
	s := settings{}
	flag.StringVar(&s.data, "data", "unique-data", "directory of the objects")
	flag.StringVar(&s.postgres, "postgres", "", "URL of a PostgreSQL for the checksums, so that "+
		"several processes may put; none: files, for one process at a time")
	flag.DurationVar(&s.lease, "lease", 30*time.Second,
		"after which a put that died in the middle is taken over")
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage); flag.PrintDefaults() }
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case flag.Arg(0) == "put" && flag.NArg() == 1:
		err = put(ctx, s)
	case flag.Arg(0) == "get" && flag.NArg() == 2:
		err = get(ctx, s, flag.Arg(1))
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "uniquestore:", err)
		os.Exit(1)
	}
}

func put(ctx context.Context, s settings) (err error) {
	content, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	store, closeStore, err := open(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	id, err := store.put(ctx, content)
	if err != nil {
		return err
	}
	fmt.Println(id)
	return nil
}

func get(_ context.Context, s settings, id string) error {
	content, err := readObject(objects(s), id)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(content)
	return err
}

func objects(s settings) string { return filepath.Join(s.data, "objects") }

// forever is as long as every store can keep a key: Cassandra's largest TTL is 20 years.
const forever = 20 * 365 * 24 * time.Hour

func open(
	ctx context.Context, s settings,
) (store *uniqueStore, closeStore func() error, err error) {
	if err := os.MkdirAll(objects(s), 0o700); err != nil {
		return nil, nil, err
	}
	keys, closeStore, err := openKeys(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	once, err := idempotency.New(keys, idempotency.Options{TTL: forever, Lease: s.lease,
		Logger: slog.Default()})
	if err != nil {
		return nil, nil, errors.Join(err, closeStore())
	}
	return newUniqueStore(objects(s), once), closeStore, nil
}

func openKeys(
	ctx context.Context, s settings,
) (keys idempotency.Store, closeKeys func() error, err error) {
	if s.postgres == "" {
		files, err := embedded.Open(embedded.Options{Path: filepath.Join(s.data, "checksums"),
			Logger: slog.Default()})
		if err != nil {
			return nil, nil, err
		}
		return files, files.Close, nil
	}
	pool, err := pgxpool.New(ctx, s.postgres)
	if err != nil {
		return nil, nil, err
	}
	options := postgres.Options{Table: "unique_objects", Logger: slog.Default()}
	err = postgres.Setup(ctx, pool, options)
	var table *postgres.Store
	if err == nil {
		table, err = postgres.Open(ctx, pool, options)
	}
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return table, func() error { defer pool.Close(); return table.Close() }, nil
}
