package redis

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Kinds of deployment.
const (
	Standalone = "standalone" // one server, or one address that leads to the master
	Sentinel   = "sentinel"   // a master that Sentinel watches
	Cluster    = "cluster"    // masters that share the keys
)

// Options say where the server is and how it is asked. All fields without "optional" are needed.
type Options struct {
	Mode string
	// host:port or host: of the server, of sentinels, or of some nodes of the cluster
	Addresses        []string
	MasterName       string             // only with Sentinel
	Database         int                // optional; not with Cluster
	Username         string             // optional
	Password         string             // optional
	SentinelUsername string             // optional
	SentinelPassword string             // optional
	TLS              func() *tls.Config // optional: what the next connection is made with
	KeyPrefix        string
	Timeout          time.Duration // of one pipeline, and of one dial
	Connections      int           // to each server; further calls wait
	PipelineClaims   int           // claims in one pipeline
	// optional: replicas that must have a claim before it is answered; not with Cluster
	WaitReplicas int
	WaitTimeout  time.Duration // how long that may take; less than Timeout
	Logger       *slog.Logger
}

const buffer = 128 << 10 // bytes, per connection and direction; a pipeline is larger

// client makes a client that repeats nothing by itself: what to repeat is decided above, where the
// outcomes are known and counted. A cluster's client follows redirections, which say that nothing
// was applied. RESP2 is enough, and cheaper: no reply can be a push message.
func (o Options) client() goredis.UniversalClient {
	goredis.SetLogger(driverLog{o.Logger}) // one for the process; there is one store in it
	switch o.Mode {
	case Cluster:
		return goredis.NewClusterClient(&goredis.ClusterOptions{
			Addrs: o.addresses("6379"), Username: o.Username, Password: o.Password,
			Dialer:    o.dialer(),
			OnConnect: o.check, MaxRetries: -1, Protocol: 2, DisableIdentity: true,
			ContextTimeoutEnabled: true,
			DialTimeout:           o.Timeout, DialerRetries: 1, ReadTimeout: o.Timeout,
			WriteTimeout: o.Timeout, PoolTimeout: o.Timeout,
			PoolSize: o.Connections, PipelinePoolSize: -1, ReadBufferSize: buffer,
			WriteBufferSize:          buffer,
			MaintNotificationsConfig: noNotifications(),
		})
	case Sentinel:
		return goredis.NewFailoverClient(&goredis.FailoverOptions{
			MasterName: o.MasterName, SentinelAddrs: o.addresses("26379"),
			SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword,
			Username: o.Username, Password: o.Password, Dialer: o.dialer(), DB: o.Database,
			OnConnect: o.check, MaxRetries: -1, Protocol: 2, DisableIdentity: true,
			ContextTimeoutEnabled: true,
			DialTimeout:           o.Timeout, DialerRetries: 1, ReadTimeout: o.Timeout,
			WriteTimeout: o.Timeout, PoolTimeout: o.Timeout,
			PoolSize: o.Connections, PipelinePoolSize: -1, ReadBufferSize: buffer,
			WriteBufferSize: buffer,
		})
	}
	return goredis.NewClient(&goredis.Options{
		Addr: o.addresses("6379")[0], Username: o.Username, Password: o.Password,
		Dialer: o.dialer(), DB: o.Database,
		OnConnect: o.check, MaxRetries: -1, Protocol: 2, DisableIdentity: true,
		ContextTimeoutEnabled: true,
		DialTimeout:           o.Timeout, DialerRetries: 1, ReadTimeout: o.Timeout,
		WriteTimeout: o.Timeout, PoolTimeout: o.Timeout,
		PoolSize: o.Connections, PipelinePoolSize: -1, ReadBufferSize: buffer,
		WriteBufferSize:          buffer,
		MaintNotificationsConfig: noNotifications(),
	})
}

// dialer asks for the TLS configuration at each connection: certificates are renewed while the
// client lives. It is nil, the driver's own, without TLS.
func (o Options) dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	if o.TLS == nil {
		return nil
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		d := tls.Dialer{NetDialer: &net.Dialer{Timeout: o.Timeout}, Config: o.TLS()}
		return d.DialContext(ctx, network, address)
	}
}

func noNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// addresses adds the port where it is missing.
func (o Options) addresses(port string) []string {
	all := make([]string, len(o.Addresses))
	for i, address := range o.Addresses {
		all[i] = address
		if _, _, err := net.SplitHostPort(address); err != nil {
			all[i] = net.JoinHostPort(address, port)
		}
	}
	return all
}

// driverLog passes the driver's own lines on at debug level: what matters comes as errors.
type driverLog struct{ log *slog.Logger }

// Printf implements the driver's logger.
func (l driverLog) Printf(_ context.Context, format string, v ...any) {
	l.log.Debug("redis driver", "message", fmt.Sprintf(format, v...))
}
