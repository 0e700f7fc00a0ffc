package cassandra

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/gocql/gocql"
)

// Options say where the table is and how it is asked. All fields without "optional" are needed.
type Options struct {
	Hosts             []string // host:port
	Keyspace, Table   string
	LocalDC           string             // optional: no node of another data centre is asked
	Username          string             // optional
	Password          string             // optional
	TLS               func() *tls.Config // optional: asked for every new connection
	Consistency       string             // of the commit, e.g. LOCAL_QUORUM
	SerialConsistency string             // of the Paxos round: LOCAL_SERIAL or SERIAL
	Timeout           time.Duration      // of one request; longer than the server's own limits
	Connections       int                // per host
	InFlight          int                // requests at the same time
	BatchClaims       int                // claims in one conditional batch
	Logger            *slog.Logger
}

func (o Options) qualifiedTable() string { return o.Quoted(o.Table) }

// scopes is the table that keeps the settings under which the claims of each scope were made.
const scopes = "dedup_scopes"

func (o Options) scopesTable() string { return o.Quoted(scopes) }

// Quoted names something of the keyspace in a statement. CQL makes other names of those with
// capitals that are not quoted, and takes those that are words of its own for these.
func (o Options) Quoted(name string) string { return quoted(o.Keyspace) + "." + quoted(name) }

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// shown names it to people, as system_schema and the configuration do.
func (o Options) shown(name string) string { return o.Keyspace + "." + name }

// connect opens a session. There is no retry policy and no speculative execution: what to repeat
// is decided above, where the outcomes are known and counted.
func (o Options) connect(keyspace string) (*gocql.Session, error) {
	return o.connectFor(keyspace, o.Timeout)
}

// connectFor opens a session whose requests may take as long as given.
func (o Options) connectFor(keyspace string, timeout time.Duration) (*gocql.Session, error) {
	cluster := gocql.NewCluster(o.Hosts...)
	cluster.Keyspace = keyspace
	if err := cluster.Consistency.UnmarshalText([]byte(o.Consistency)); err != nil {
		return nil, fmt.Errorf("consistency: %w", err)
	}
	cluster.Timeout = timeout
	cluster.ConnectTimeout = o.Timeout
	cluster.NumConns = o.Connections
	// the columns of a conditional answer differ from one to the next
	cluster.DisableSkipMetadata = true
	cluster.DefaultTimestamp = false // the Paxos ballot is the timestamp
	cluster.ReconnectInterval = 2 * time.Second
	cluster.Logger = driverLog{o.Logger}
	if o.Username != "" {
		cluster.Authenticator = gocql.PasswordAuthenticator{Username: o.Username,
			Password: o.Password}
	}
	if o.TLS != nil {
		cluster.HostDialer = tlsDialer{timeout: o.Timeout, config: o.TLS}
	}
	// Not the driver's policy for a data centre: that asks those of others when no local node
	// answers.
	if o.LocalDC != "" {
		cluster.HostFilter = gocql.DataCentreHostFilter(o.LocalDC)
	}
	// Replicas are not shuffled: all requests of a bucket meet the same coordinator first, which
	// queues them instead of letting ballots compete.
	cluster.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(
		gocql.RoundRobinHostPolicy())
	dialled := &dials{}
	cluster.ConnectObserver = dialled
	session, err := cluster.CreateSession()
	failed := dialled.end()
	if err != nil {
		return nil, &connectError{err, failed}
	}
	return session, nil
}

// driverLog passes the driver's own lines on at debug level: what matters comes as errors.
type driverLog struct{ log *slog.Logger }

func (l driverLog) Print(v ...any) {
	l.log.Debug("cassandra driver", "message", fmt.Sprint(v...))
}
func (l driverLog) Println(v ...any) {
	l.log.Debug("cassandra driver", "message", fmt.Sprint(v...))
}
func (l driverLog) Printf(format string, v ...any) {
	l.log.Debug("cassandra driver", "message", strings.TrimSpace(fmt.Sprintf(format, v...)))
}
