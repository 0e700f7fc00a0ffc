package registry_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/dedup/messageid/registry"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

const (
	currency = `{"type":"enum","name":"Currency","namespace":"shop","symbols":["EUR","USD"]}`
	price    = `{"type":"record","name":"Price","namespace":"shop","fields":[` +
		`{"name":"currency","type":"shop.Currency"}]}`
	order = `{"type":"record","name":"Order","namespace":"shop","fields":[` +
		`{"name":"price","type":"shop.Price"}]}`
)

func TestARealRegistryIsUnderstood(t *testing.T) {
	testkit.Share(t, []string{"all"}, nil)
	server := servers.Registry(t)
	c := client(t, registry.Options{URLs: []string{servers.RegistryURL(server)},
		Timeout: 30 * time.Second})
	admin, err := sr.NewClient(sr.URLs(servers.RegistryURL(server)))
	if err != nil {
		t.Fatal(err)
	}
	register := func(subject, text string, references ...sr.SchemaReference) int {
		t.Helper()
		made, err := admin.CreateSchema(t.Context(), subject,
			sr.Schema{Schema: text, References: references})
		if err != nil {
			t.Fatal(err)
		}
		return made.ID
	}
	register("currency", currency)
	register("price", price, sr.SchemaReference{Name: "shop.Currency", Subject: "currency",
		Version: 1})
	id := register("orders-value", order, sr.SchemaReference{Name: "shop.Price", Subject: "price",
		Version: 1})

	want := messageid.Schema{Type: "avro", Text: order, References: []messageid.Reference{
		{Name: "shop.Currency", Text: currency}, {Name: "shop.Price", Text: price}}}
	for name, ask := range map[string]func() (messageid.Schema, error){
		"by ID":  func() (messageid.Schema, error) { return c.Schema(t.Context(), uint32(id)) },
		"newest": func() (messageid.Schema, error) { return c.Newest(t.Context(), "orders-value") },
	} {
		got, err := ask()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	if _, err := c.Schema(t.Context(), 4711); !errors.Is(err, messageid.ErrUnknownSchema) {
		t.Errorf("a schema that is not there: %v", err)
	}
	if _, err := c.Newest(t.Context(), "payments-value"); !errors.Is(err, registry.ErrNoSubject) {
		t.Errorf("a subject that is not there: %v", err)
	}
	astray := client(t, registry.Options{URLs: []string{"http://" + server.Addr() + "/registry"}})
	if _, err := astray.Schema(t.Context(), uint32(id)); err == nil ||
		errors.Is(err, messageid.ErrUnknownSchema) || !strings.Contains(err.Error(), "urls") {
		t.Errorf("another path of the server: %v", err)
	}

	byItsOwnAPI(t, server.Addr(), uint64(id), want)
	if _, err := c.SchemaOf(t.Context(), messageid.GUIDRef([16]byte{1})); err == nil ||
		errors.Is(err, messageid.ErrUnknownSchema) || !strings.Contains(err.Error(), "GUIDs") {
		t.Errorf("a registry that knows no GUIDs: %v", err)
	}

	server.Kill()
	if _, err := c.Schema(t.Context(), uint32(id)); err == nil ||
		errors.Is(err, messageid.ErrUnknownSchema) || c.Err() == nil {
		t.Errorf("a registry that is down: %v", err)
	}
}

// byItsOwnAPI asks for a schema by both of Apicurio's numbers.
func byItsOwnAPI(t *testing.T, address string, contentID uint64, want messageid.Schema) {
	t.Helper()
	c := client(t, registry.Options{URLs: []string{"http://" + address + "/"},
		Type: registry.Apicurio, Timeout: 30 * time.Second,
		Framing: messageid.Framing{Numbers: messageid.RefContentID}})
	answer, err := http.Get("http://" + address +
		"/apis/registry/v3/groups/default/artifacts/orders-value/versions/1")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var version struct{ ContentID, GlobalID uint64 }
	if err := json.NewDecoder(answer.Body).Decode(&version); err != nil ||
		version.ContentID != contentID {
		t.Fatalf("contentId %d, and Confluent's API has %d: %v", version.ContentID, contentID, err)
	}
	number := messageid.NumberRef
	for name, ask := range map[string]func() (messageid.Schema, error){
		"by contentId": func() (messageid.Schema, error) {
			return c.SchemaOf(t.Context(), number(messageid.RefContentID, contentID))
		},
		"by globalId": func() (messageid.Schema, error) {
			return c.SchemaOf(t.Context(), number(messageid.RefGlobalID, version.GlobalID))
		},
		"newest": func() (messageid.Schema, error) { return c.Newest(t.Context(), "orders-value") },
	} {
		got, err := ask()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	for _, kind := range []messageid.RefKind{messageid.RefContentID, messageid.RefGlobalID} {
		if _, err := c.SchemaOf(t.Context(), number(kind, 4711)); !errors.Is(err,
			messageid.ErrUnknownSchema) {
			t.Errorf("a schema that is not there: %v", err)
		}
	}
	if _, err := c.Newest(t.Context(), "payments-value"); !errors.Is(err, registry.ErrNoSubject) {
		t.Errorf("a subject that is not there: %v", err)
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}
