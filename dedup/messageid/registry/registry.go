// Package registry asks a schema registry that speaks Confluent's API for the schemas of records.
package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/kdedup/kdedup/dedup/messageid"
)

// Options of a client.
type Options struct {
	URLs               []string // of one registry; the next is asked if one does not answer
	Username, Password string
	Token              string
	Tokens             Tokens      // in its place; nil: none
	Headers            http.Header // of each request
	// TLS is asked for each connection; nil: what the system trusts.
	TLS     func() *tls.Config
	Timeout time.Duration // of one request
	Type    string        // Confluent, the default, or another one of the types
	// Schemas are files, see schema_registry.schemas; all that there is with the type Files.
	Schemas []string
	Glue    GlueOptions // with the type Glue; URLs are in the place of the service's own
	Framing messageid.Framing
}

// Tokens are renewed while the client lives. It is safe for concurrent use.
type Tokens interface {
	// Token returns the one that is valid now.
	Token(ctx context.Context) (string, error)
	// Refused is told which one the registry takes no more.
	Refused(token string)
}

// Client asks the registry. It is safe for concurrent use, and keeps nothing but connections: who
// asks keeps the answers, which never change.
type Client struct {
	servers []server
	kind    string
	files   *files
	glue    *glue // nil: another type
	framing messageid.Framing
	idle    *http.Transport
	last    atomic.Pointer[error] // of the last question; nil or a pointer to nil: it was answered
}

var (
	_ messageid.RefRegistry = (*Client)(nil)
	_ messageid.Framer      = (*Client)(nil)

	_ messageid.NamedRegistry = (*Client)(nil)
)

// New connects to nobody yet.
func New(o Options) (*Client, error) {
	c := &Client{kind: o.Type, framing: o.Framing, idle: transport(o.TLS)}
	var err error
	if c.files, err = readFiles(o.Schemas); err != nil {
		return nil, err
	}
	if o.Type == Glue {
		c.glue, err = newGlue(o, c.idle)
		return c, err
	}
	for _, url := range o.URLs {
		s, err := newServer(url, o, c.idle)
		if err != nil {
			return nil, err
		}
		c.servers = append(c.servers, s)
	}
	return c, nil
}

// Framing implements messageid.Framer.
func (c *Client) Framing() messageid.Framing { return c.framing }

// Asks is the type of the registry.
func (c *Client) Asks() string { return c.kind }

// Close ends the connections that are not in use.
func (c *Client) Close() { c.idle.CloseIdleConnections() }

// Err is why the last question had no answer; nil if it had one, or none was asked.
func (c *Client) Err() error {
	if last := c.last.Load(); last != nil {
		return *last
	}
	return nil
}

// Ready is Err, and asks again after a failure: nobody else may have a question any more.
func (c *Client) Ready(ctx context.Context) error {
	if c.Err() == nil {
		return nil
	}
	none := messageid.NumberRef(c.framing.Numbers, 0)
	if c.glue != nil || c.kind == Azure {
		none = messageid.UUIDRef(c.uuids(), [16]byte{})
	}
	if _, err := c.SchemaOf(ctx, none); !errors.Is(err, messageid.ErrUnknownSchema) {
		return err
	}
	return nil
}

// Codes of Confluent's API, with status 404. Without one of them somebody else answers.
const (
	noSubject = 40401
	noVersion = 40402
	noSchema  = 40403
)

// ErrNoSubject says that the registry has no such subject.
var ErrNoSubject = errors.New("the schema registry has no such subject")

// Schema implements messageid.Registry.
func (c *Client) Schema(ctx context.Context, id uint32) (messageid.Schema, error) {
	return c.SchemaOf(ctx, messageid.NumberRef(messageid.RefID, uint64(id)))
}

// SchemaOf implements messageid.RefRegistry.
func (c *Client) SchemaOf(ctx context.Context, ref messageid.Ref) (messageid.Schema, error) {
	number := ref.Kind == messageid.RefContentID || ref.Kind == messageid.RefGlobalID
	if s, known := c.files.number[ref.Number()]; known && (number || ref.Kind == messageid.RefID) {
		return s, nil
	}
	switch {
	case ref.Kind == messageid.RefFingerprint:
		if s, known := c.files.fingerprint[ref.Number()]; known {
			return s, nil
		}
		return messageid.Schema{}, fmt.Errorf("%w: no file of schema_registry.schemas has the %s",
			messageid.ErrUnknownSchema, ref)
	case c.kind == Files:
		return messageid.Schema{}, fmt.Errorf("%w: schema_registry.type is files, and records name "+
			"a schema of a registry", messageid.ErrUnknownSchema)
	case ref.Kind == messageid.RefGlue && c.glue != nil:
		s, err := c.glueVersion(ctx, map[string]any{"SchemaVersionId": ref.String()})
		return s.Schema, err
	case ref.Kind == messageid.RefAzure && c.kind == Azure:
		return c.azureSchema(ctx, ref)
	case ref.Kind == messageid.RefID:
		return c.byID(ctx, ref)
	case number && c.kind == Apicurio:
		return c.apicurioSchema(ctx, ref)
	case number:
		return messageid.Schema{}, fmt.Errorf("%w: %s is one of Apicurio's numbers, write "+
			"schema_registry.type: apicurio", messageid.ErrUnknownSchema, ref)
	case ref.Kind == messageid.RefGUID && c.kind != Apicurio:
		return c.byGUID(ctx, ref)
	}
	return messageid.Schema{}, fmt.Errorf("%w: no registry has schemas by a %s",
		messageid.ErrUnknownSchema, ref)
}

func (c *Client) byID(ctx context.Context, ref messageid.Ref) (messageid.Schema, error) {
	var found sr.Schema
	err := c.ask(ctx, func(server server) (err error) {
		found, err = server.SchemaByID(ctx, int(ref.Number()))
		return err
	})
	return c.answered(ctx, found, err)
}

func (c *Client) byGUID(ctx context.Context, ref messageid.Ref) (messageid.Schema, error) {
	var found sr.SubjectSchema
	err := c.ask(ctx, func(server server) (err error) {
		found, err = server.SchemaByGUID(ctx, ref.String())
		return err
	})
	return c.answered(ctx, found.Schema, err)
}

// answered makes what a registry answered a schema with all that it refers to.
func (c *Client) answered(
	ctx context.Context, found sr.Schema, err error,
) (messageid.Schema, error) {
	switch {
	case isDenial(err, noSchema):
		return messageid.Schema{}, messageid.ErrUnknownSchema
	case err != nil:
		return messageid.Schema{}, err
	}
	return c.complete(ctx, found)
}

// Versions are the schemas of a subject that its newest records may have, the newest first. There
// is one, but where the schemas of keys and values have one name. It ends with the first error.
func (c *Client) Versions(
	ctx context.Context, subject string,
) iter.Seq2[messageid.Schema, error] {
	if c.kind == Glue {
		return c.glueVersions(ctx, subject)
	}
	return func(yield func(messageid.Schema, error) bool) { yield(c.Newest(ctx, subject)) }
}

// Newest is the newest schema of a subject.
func (c *Client) Newest(ctx context.Context, subject string) (messageid.Schema, error) {
	switch c.kind {
	case Files, Azure:
		return messageid.Schema{}, ErrNoSubject
	case Glue:
		s, err := c.glueNumbered(ctx, subject, 0)
		return s.Schema, err
	case Apicurio:
		s, err := c.apicurioNewest(ctx, subject)
		if errors.Is(err, messageid.ErrUnknownSchema) {
			err = ErrNoSubject
		}
		return s, err
	}
	var found sr.SubjectSchema
	err := c.ask(ctx, func(server server) (err error) {
		found, err = server.SchemaByVersion(ctx, subject, -1)
		return err
	})
	switch {
	case isDenial(err, noSubject, noVersion):
		return messageid.Schema{}, ErrNoSubject
	case err != nil:
		return messageid.Schema{}, err
	}
	return c.complete(ctx, found.Schema)
}

// ask goes from server to server until one answers. That there is no such thing is an answer.
func (c *Client) ask(ctx context.Context, question func(server) error) error {
	var problems []error
	for _, server := range c.servers {
		err := question(server)
		if err == nil || isDenial(err, noSubject, noVersion, noSchema) {
			c.last.Store(nil)
			return err
		}
		problems = append(problems, explained(err))
		if ctx.Err() != nil {
			break
		}
	}
	if len(c.servers) == 0 {
		problems = append(problems, errors.New("urls is empty"))
	}
	err := fmt.Errorf("schema_registry: %w", errors.Join(problems...))
	if ctx.Err() == nil { // otherwise it was not the registry
		c.last.Store(&err)
	}
	return err
}

func isDenial(err error, codes ...int) bool {
	var answer *sr.ResponseError
	if !errors.As(err, &answer) || answer.StatusCode != http.StatusNotFound {
		return false
	}
	for _, code := range codes {
		if answer.ErrorCode == code {
			return true
		}
	}
	return false
}

// explained adds a remedy, and leaves out what the answer may repeat of the request.
func explained(err error) error {
	var answer *sr.ResponseError
	if !errors.As(err, &answer) {
		return err
	}
	at := answer.URL
	if u, parsed := url.Parse(at); parsed == nil {
		at = u.Redacted()
	}
	remedy := ""
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		remedy = ": correct schema_registry.username and password, token, oauth or tls"
	case http.StatusForbidden:
		remedy = ": allow this user to read the subjects"
	case http.StatusNotFound:
		if strings.Contains(at, "/schemas/guids/") {
			remedy = ": records name their schemas by GUIDs, in a header, and this registry is not " +
				"asked by them; Confluent's is from version 8.0 on"
			break
		}
		remedy = ": there is no schema registry at this URL, correct schema_registry.urls"
	}
	return fmt.Errorf("%s answered %d %s%s", at, answer.StatusCode,
		http.StatusText(answer.StatusCode), remedy)
}

// mostReferences bounds the questions about one schema.
const mostReferences = 200

// complete adds the schemas that it refers to, and theirs.
func (c *Client) complete(ctx context.Context, s sr.Schema) (messageid.Schema, error) {
	whole := messageid.Schema{Type: typeOf(s.Type), Text: s.Schema}
	seen := make(needed)
	if err := c.follow(ctx, s.References, &whole, seen); err != nil {
		return messageid.Schema{}, err
	}
	return whole, nil
}

// needed are the names of those that a schema was found to need.
type needed map[string]bool

// add reports whether a name was not among them.
func (n needed) add(name string) (fresh bool, err error) {
	if n[name] {
		return false, nil
	}
	if n[name] = true; len(n) > mostReferences {
		return false, fmt.Errorf("%w that can be used: it has more than %d references",
			messageid.ErrUnknownSchema, mostReferences)
	}
	return true, nil
}

// follow appends what references need before them. A reference that is gone makes a schema unknown
// that the registry has.
func (c *Client) follow(
	ctx context.Context, all []sr.SchemaReference, whole *messageid.Schema, seen needed,
) error {
	for _, r := range all {
		if fresh, err := seen.add(r.Name); err != nil {
			return err
		} else if !fresh {
			continue
		}
		var found sr.SubjectSchema
		deleted := sr.WithParams(ctx, sr.ShowDeleted)
		err := c.ask(ctx, func(server server) (err error) {
			found, err = server.SchemaByVersion(deleted, r.Subject, r.Version)
			return err
		})
		switch {
		case isDenial(err, noSubject, noVersion):
			return fmt.Errorf("%w with all it refers to: subject %s has no version %d",
				messageid.ErrUnknownSchema, r.Subject, r.Version)
		case err != nil:
			return err
		}
		if err := c.follow(ctx, found.Schema.References, whole, seen); err != nil {
			return err
		}
		whole.References = append(whole.References,
			messageid.Reference{Name: r.Name, Text: found.Schema.Schema})
	}
	return nil
}

func typeOf(t sr.SchemaType) string {
	switch t {
	case sr.TypeProtobuf:
		return messageid.FromProtobuf
	case sr.TypeJSON:
		return messageid.FromJSONSchema
	}
	return messageid.FromAvro
}
