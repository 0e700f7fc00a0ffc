package registry_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/internal/registry"
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

	server.Kill()
	if _, err := c.Schema(t.Context(), uint32(id)); err == nil ||
		errors.Is(err, messageid.ErrUnknownSchema) || c.Err() == nil {
		t.Errorf("a registry that is down: %v", err)
	}
}
