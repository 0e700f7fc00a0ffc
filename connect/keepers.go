package connect

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/dedup/claimlog/kafkalog"
	"github.com/kdedup/kdedup/dedup/claimlog/keepers"
	"github.com/kdedup/kdedup/internal/certs"
)

// OpenSharedStore is OpenStore for the process that runs the pipelines. It may share out a claim
// log with others; commands beside it read the log themselves.
func OpenSharedStore(
	ctx context.Context, c config.Config, reg prometheus.Registerer, log *slog.Logger,
) (dedup.Store, error) {
	if !c.Store.Logs() || !c.Store.Keepers.Shares() {
		return OpenStore(ctx, c, reg, log)
	}
	options, err := claimLogOptions(ctx, c, log)
	if err != nil {
		return nil, err
	}
	options.Registerer = reg
	if path, _ := c.Store.IndexPath(); path != nil {
		options.Path = filepath.Join(*path, "instance-"+c.Instance)
	}
	if options.Keepers, err = sharedKeepers(ctx, c, log); err != nil {
		return nil, fmt.Errorf("store.keepers: %w", err)
	}
	return claimlog.Open(options), nil
}

func sharedKeepers(
	ctx context.Context, c config.Config, log *slog.Logger,
) (*claimlog.Keepers, error) {
	k := c.Store.Keepers
	shared := &claimlog.Keepers{Instance: c.Instance, Address: k.Advertise,
		Keep: k.Keeps(), Copies: k.Copies}
	connector, err := claimsConnector(ctx, c, log)
	if err != nil {
		return nil, err
	}
	o := keepers.Options{Logger: log, Members: &keepers.Members{
		Connection: connector.AdminOptions("kdedup-"+c.Instance+"-keepers", log),
		Topic:      keepersTopic(c),
	}}
	if o.TLS, err = keepersTLS(k, log); err != nil {
		return nil, err
	}
	if shared.Keep {
		if o.Listener, err = net.Listen("tcp", k.Listen); err != nil {
			return nil, err
		}
		if shared.Address == "" {
			shared.Address = o.Listener.Addr().String()
		}
	}
	shared.Network = keepers.New(o)
	return shared, nil
}

// keepersTopic is a topic that exists, and which a process of a group may read.
func keepersTopic(c config.Config) func(group string) string {
	if c.Store.Type == config.StoreKafka {
		return kafkalog.New(kafkalog.Options{Topic: c.Store.Kafka.Topic}).ClaimsTopic
	}
	return func(group string) string {
		for _, t := range c.Topics {
			if t.ScopeGroup == group {
				return t.Input
			}
		}
		if len(c.Topics) > 0 { // the group is of a topic that came later
			return c.Topics[0].Input
		}
		return ""
	}
}

// keepersTLS are the settings of both sides of a connection; nil if there are none.
func keepersTLS(k config.Keepers, log *slog.Logger) (func() *tls.Config, error) {
	switch {
	case k.Secret != "":
		settings, err := keepers.FromSecret([]byte(k.Secret))
		return func() *tls.Config { return settings }, err
	case k.TLS == (config.KeepersTLS{}):
		return nil, nil
	}
	files, err := certs.Client("store.keepers.tls", certs.ClientFiles{CAFile: k.TLS.CAFile,
		CertFile: k.TLS.CertFile, KeyFile: k.TLS.KeyFile}, log)
	if err != nil {
		return nil, err
	}
	return func() *tls.Config {
		both := files.Current().Clone()
		both.MinVersion = tls.VersionTLS13
		both.ClientCAs, both.ClientAuth = both.RootCAs, tls.RequireAndVerifyClientCert
		// A resumed session would carry a certificate that new authorities may not have signed.
		both.SessionTicketsDisabled = true
		return both
	}, nil
}
