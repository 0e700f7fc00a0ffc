package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/process"
)

// severalProcesses checks --processes, and has them reach each other on this machine alone: what
// store.keepers says of addresses is for those that run.
func (f *benchFlags) severalProcesses(c *config.Config) error {
	if f.processes < 1 {
		return usageError{fmt.Errorf("--processes must be at least 1, got %d", f.processes)}
	}
	if f.processes > 1 && c.Store.Type == config.StoreEmbedded {
		return usageError{errors.New("--processes must be 1 with store.type embedded, which " +
			"belongs to one process; take another type of store")}
	}
	k := &c.Store.Keepers
	k.Listen, k.Advertise = "127.0.0.1:0", ""
	c.API = config.API{} // nobody calls a measurement
	k.Secret, k.TLS = config.Secret(rand.Text()+rand.Text()), config.KeepersTLS{}
	return nil
}

// processesOf are the configurations of the processes: those with lanes, and behind them keepers
// without, which lanes that keep nothing ask.
func (f *benchFlags) processesOf(c config.Config) (lanes, keepers []config.Config) {
	named := func(format string, number int, keep string) config.Config {
		one := c
		one.Instance, one.Store.Keepers.Keep = fmt.Sprintf(format, number), keep
		return one
	}
	keep := c.Store.Keepers.Keep
	if apart := keep == config.KeepNone || keep == config.KeepOnly; apart && c.Store.Logs() {
		keep = config.KeepNone
		for number := range max(c.Store.Keepers.Copies, 1) {
			keepers = append(keepers, named("keeper-%d", number, config.KeepOnly))
		}
	}
	for number := range f.processes {
		lanes = append(lanes, named("bench-%d", number, keep))
	}
	return lanes, keepers
}

// processesText says how many there are, unless it is one.
func processesText(lanes, keepers int) string {
	switch {
	case keepers > 0:
		return fmt.Sprintf("%s, %d processes of ",
			report.Counted(int64(keepers), "keeper", "keepers"), lanes)
	case lanes > 1:
		return fmt.Sprintf("%d processes of ", lanes)
	}
	return ""
}

// runAllBeside runs the processes while work does.
func runAllBeside(
	ctx context.Context, all []*process.Process, work func(context.Context) error,
) error {
	if len(all) == 0 {
		return work(ctx)
	}
	return all[0].RunBeside(ctx, func(ctx context.Context) error {
		return runAllBeside(ctx, all[1:], work)
	})
}

// benchStore is the store as one process of the measurement has it.
type benchStore struct {
	dedup.Store
	config config.Config
}

func openBenchStore(
	ctx context.Context, c config.Config, log *slog.Logger,
) (*benchStore, error) {
	store, err := connect.OpenSharedStore(ctx, c, prometheus.NewRegistry(), log)
	if err != nil {
		return nil, err
	}
	if c.Store.Logs() && c.Store.Keepers.Keep == config.KeepOnly {
		if err := connect.Keep(store, c); err != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	return &benchStore{store, c}, nil
}

// openStores opens the store for each process. What it has opened before an error is closed again.
func openStores(
	ctx context.Context, all []config.Config, log *slog.Logger,
) (stores []*benchStore, err error) {
	for _, c := range all {
		store, err := openBenchStore(ctx, c, log)
		if err != nil {
			return nil, errors.Join(err, closeStores(stores))
		}
		stores = append(stores, store)
	}
	return stores, nil
}

func closeStores(stores []*benchStore) error {
	var errs []error
	for _, store := range stores {
		errs = append(errs, store.Close())
	}
	return errors.Join(errs...)
}
