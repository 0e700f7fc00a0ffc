package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options say where the table is and how it is asked. Hosts, Database and Username are needed.
type Options struct {
	Hosts    []string // host:port; the first that takes writes is used
	Database string
	Username string
	Password string
	TLS      func() *tls.Config // what the next connection is made with; nil: no encryption
	Schema   string             // "": kdedup
	Table    string             // "": processed_messages
	// of one statement, and of one attempt to connect; 0: 5 seconds
	Timeout     time.Duration
	Connections int // for claims; 0: 4
	BatchClaims int // claims in one statement; 0: 2500
	// between two looks for expired claims; 0: this process deletes none
	SweepInterval time.Duration
	Logger        *slog.Logger // nil: nothing is logged
}

func (o Options) withDefaults() Options {
	o.Schema = cmp.Or(o.Schema, "kdedup")
	o.Table = cmp.Or(o.Table, "processed_messages")
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.Connections = cmp.Or(o.Connections, 4)
	o.BatchClaims = cmp.Or(o.BatchClaims, 2500)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

func (o Options) claimsTable() string { return pgx.Identifier{o.Schema, o.Table}.Sanitize() }

// scopesTable keeps the settings under which the claims of each scope were made.
func (o Options) scopesTable() string { return pgx.Identifier{o.Schema, "dedup_scopes"}.Sanitize() }

// connect makes a pool; it connects when the pool is used. Statements are not prepared under a name
// and nothing is set for a session, so a pgbouncer may stand in between that hands every
// transaction to another session.
func (o Options) connect(
	ctx context.Context, check func(context.Context, *pgx.Conn) error,
) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(o.address())
	if err != nil {
		return nil, err
	}
	conn := config.ConnConfig
	conn.Password = o.Password // not from PGPASSWORD or a .pgpass
	conn.RuntimeParams = map[string]string{"application_name": "kdedup"}
	conn.ConnectTimeout = o.Timeout
	conn.DefaultQueryExecMode = execMode
	config.BeforeConnect = o.encrypt
	config.MaxConns = int32(o.Connections) + 1 // one for the sweep
	config.AfterConnect = check
	if o.TLS == nil && !o.local() {
		conn.RequireAuth = "!password" // an eavesdropper, or a false server, would have it
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// local reports whether no connection leaves this machine.
func (o Options) local() bool {
	return !slices.ContainsFunc(o.Hosts, func(address string) bool {
		host, _, err := net.SplitHostPort(withPort(address))
		return err != nil || host != "localhost" && !net.ParseIP(host).IsLoopback()
	})
}

// address has no password, so that no error can show one.
func (o Options) address() string {
	query := url.Values{"sslmode": {"disable"}, "target_session_attrs": {"read-write"}}
	hosts := make([]string, len(o.Hosts))
	for i, host := range o.Hosts {
		hosts[i] = withPort(host)
	}
	return "postgres://" + url.User(o.Username).String() + "@" + strings.Join(hosts, ",") + "/" +
		url.PathEscape(o.Database) + "?" + query.Encode()
}

func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err != nil {
		return net.JoinHostPort(host, "5432")
	}
	return host
}

// encrypt sets up TLS for one connection, so that it takes the certificates as they are now.
func (o Options) encrypt(_ context.Context, conn *pgx.ConnConfig) error {
	if o.TLS == nil {
		return nil
	}
	conn.TLSConfig = serverTLS(o.TLS(), conn.Host)
	for _, other := range conn.Fallbacks {
		other.TLSConfig = serverTLS(o.TLS(), other.Host)
	}
	return nil
}

func serverTLS(config *tls.Config, host string) *tls.Config {
	if config.ServerName != "" {
		return config
	}
	config = config.Clone()
	config.ServerName = host
	return config
}

// checkSession refuses a server on which answers are not durable by default. What another client
// has set for the session, behind a pooler, is another matter: each statement that counts sets it
// right, see durable.
func checkSession(ctx context.Context, conn *pgx.Conn) error {
	var commit, source, user string
	row := conn.QueryRow(ctx, "SELECT setting, source, current_user FROM pg_settings "+
		"WHERE name = 'synchronous_commit'")
	if err := row.Scan(&commit, &source, &user); err != nil {
		return fmt.Errorf("read synchronous_commit: %w", err)
	}
	if commit == "off" && source != "session" {
		return fmt.Errorf("%w; run: ALTER ROLE %s SET synchronous_commit = on", errForgetful,
			pgx.Identifier{user}.Sanitize())
	}
	return nil
}

var errForgetful = errors.New(
	"synchronous_commit is off: a crash of the server would forget claims that were answered")
