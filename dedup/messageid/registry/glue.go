package registry

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/kdedup/kdedup/dedup/messageid"
)

// GlueOptions are of AWS.
type GlueOptions struct {
	// Load returns the credentials, and the region where none is configured. It is asked until it
	// has answered once.
	Load     func(context.Context) (aws.CredentialsProvider, string, error)
	Region   string // empty: that of Load
	Registry string // empty: default-registry; only the newest schemas are asked for by it
}

// glue calls one operation of the service. Its whole client is a package of 10 MB of source.
type glue struct {
	GlueOptions
	url    string // empty: the region's
	http   *http.Client
	signer *v4.Signer

	mu          sync.Mutex // of the rest
	credentials aws.CredentialsProvider
	region      string
}

func newGlue(o Options, idle http.RoundTripper) (*glue, error) {
	if o.Glue.Load == nil {
		return nil, errors.New("schema_registry: there are no credentials of AWS to ask for")
	}
	g := &glue{GlueOptions: o.Glue, signer: v4.NewSigner(), http: &http.Client{Timeout: o.Timeout,
		Transport: trip{RoundTripper: idle, headers: o.Headers}, CheckRedirect: refuseRedirect}}
	if len(o.URLs) > 0 {
		g.url = strings.TrimSuffix(o.URLs[0], "/")
	}
	return g, nil
}

func (g *glue) loaded(ctx context.Context) (aws.CredentialsProvider, string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.credentials == nil {
		credentials, region, err := g.Load(ctx)
		if err != nil {
			return nil, "", err
		}
		if g.Region != "" {
			region = g.Region
		}
		if region == "" {
			return nil, "", errors.New("schema_registry.region: is required, for neither the " +
				"environment nor the profile has one")
		}
		g.credentials, g.region = credentials, region
	}
	return g.credentials, g.region, nil
}

// glueDenial is what the service answers in the place of a success.
type glueDenial struct {
	status  int
	kind    string
	Message string
}

func (d *glueDenial) Error() string {
	remedy := ""
	if d.status == http.StatusForbidden || strings.HasPrefix(d.kind, "AccessDenied") ||
		strings.HasPrefix(d.kind, "UnrecognizedClient") {
		remedy = ": allow glue:GetSchemaVersion to this user, on the registry and its schemas"
	}
	return fmt.Sprintf("AWS Glue answered %d %s: %s%s", d.status, d.kind, d.Message, remedy)
}

// glueSchema is one version of a schema; the first has number 1.
type glueSchema struct {
	messageid.Schema
	number int
}

// version calls GetSchemaVersion.
func (g *glue) version(ctx context.Context, question any) (s glueSchema, err error) {
	credentials, region, err := g.loaded(ctx)
	if err != nil {
		return s, err
	}
	key, err := credentials.Retrieve(ctx)
	if err != nil {
		return s, fmt.Errorf("the credentials of AWS: %w", err)
	}
	body, err := json.Marshal(question)
	if err != nil {
		return s, err
	}
	at := g.url
	if at == "" {
		at = glueURL(region)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/", bytes.NewReader(body))
	if err != nil {
		return s, err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "AWSGlue.GetSchemaVersion")
	r.Header.Set("User-Agent", "kdedup")
	sum := sha256.Sum256(body)
	if err := g.signer.SignHTTP(ctx, key, r, hex.EncodeToString(sum[:]), "glue", region,
		time.Now()); err != nil {
		return s, err
	}
	answer, err := g.http.Do(r)
	if err != nil {
		return s, err
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		return s, fmt.Errorf("read the answer of %s: %w", at, err)
	}
	return glueAnswer(answer, body)
}

func glueURL(region string) string {
	domain := "amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		domain += ".cn"
	}
	return (&url.URL{Scheme: "https", Host: "glue." + region + "." + domain}).String()
}

func glueAnswer(answer *http.Response, body []byte) (s glueSchema, err error) {
	if answer.StatusCode != http.StatusOK {
		problem := struct {
			Type    string `json:"__type"`
			Message string
		}{Type: answer.Header.Get("X-Amzn-Errortype")}
		_ = json.Unmarshal(body, &problem) // what is no JSON names no kind
		kind := problem.Type[strings.LastIndexByte(problem.Type, '#')+1:]
		if kind == "EntityNotFoundException" {
			return s, messageid.ErrUnknownSchema
		}
		return s, &glueDenial{answer.StatusCode, kind, problem.Message}
	}
	var found struct {
		SchemaDefinition, DataFormat, Status string
		VersionNumber                        int
	}
	if err := json.Unmarshal(body, &found); err != nil {
		return s, fmt.Errorf("decode the answer of AWS Glue: %w", err)
	}
	s.Text, s.number = found.SchemaDefinition, found.VersionNumber
	switch found.DataFormat {
	case "AVRO":
		s.Type = messageid.FromAvro
	case "PROTOBUF":
		s.Type = messageid.FromProtobuf
	case "JSON":
		s.Type = messageid.FromJSONSchema
	default:
		return s, fmt.Errorf("AWS Glue answered a schema of the format %q", found.DataFormat)
	}
	return s, nil
}

// glueVersion asks for one version of a schema.
func (c *Client) glueVersion(ctx context.Context, question any) (glueSchema, error) {
	s, err := c.glue.version(ctx, question)
	if err == nil || errors.Is(err, messageid.ErrUnknownSchema) {
		c.last.Store(nil)
		return s, err
	}
	err = fmt.Errorf("schema_registry: %w", err)
	if ctx.Err() == nil { // otherwise it was not the registry
		c.last.Store(&err)
	}
	return s, err
}

// glueNumbered is a version of a schema; 0: the newest. The serializers name it as the topic.
func (c *Client) glueNumbered(ctx context.Context, name string, number int) (glueSchema, error) {
	version := map[string]any{"LatestVersion": true}
	if number > 0 {
		version = map[string]any{"VersionNumber": number}
	}
	s, err := c.glueVersion(ctx, map[string]any{"SchemaVersionNumber": version,
		"SchemaId": map[string]string{"SchemaName": name,
			"RegistryName": cmp.Or(c.glue.Registry, "default-registry")}})
	if errors.Is(err, messageid.ErrUnknownSchema) {
		err = ErrNoSubject
	}
	return s, err
}

// mostVersions of a schema in Glue are looked at. The serializers give a topic's keys and values
// one name, so the versions of the two take turns there.
const mostVersions = 10

// glueVersions are those of a schema, the newest first.
func (c *Client) glueVersions(ctx context.Context, name string) iter.Seq2[messageid.Schema, error] {
	return func(yield func(messageid.Schema, error) bool) {
		newest, err := c.glueNumbered(ctx, name, 0)
		if !yield(newest.Schema, err) || err != nil {
			return
		}
		for n := newest.number - 1; n > 0 && n > newest.number-mostVersions; n-- {
			s, err := c.glueNumbered(ctx, name, n)
			if errors.Is(err, ErrNoSubject) {
				continue // this version was deleted
			}
			if !yield(s.Schema, err) || err != nil {
				return
			}
		}
	}
}
