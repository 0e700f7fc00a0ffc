package registry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/dedup/messageid/registry"
)

func keys(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "sesame"}, nil
}

func glueOptions(url string) registry.Options {
	return registry.Options{Type: registry.Glue, URLs: []string{url}, Glue: registry.GlueOptions{
		Load: func(context.Context) (aws.CredentialsProvider, string, error) {
			return aws.CredentialsProviderFunc(keys), "eu-central-1", nil
		}}}
}

// The answers are made by the manual of the API; that of a schema which is not there is moto's.
func TestGlueIsAskedWithASignature(t *testing.T) {
	numbered := func(number string) string {
		return `{"SchemaId":{"RegistryName":"default-registry","SchemaName":"both"},` +
			`"SchemaVersionNumber":{` + number + `}}`
	}
	answers := map[string]string{
		numbered(`"LatestVersion":true`): `{"SchemaDefinition": "4", "DataFormat": "AVRO", ` +
			`"VersionNumber": 4}`,
		numbered(`"VersionNumber":2`): `{"SchemaDefinition": "2", "DataFormat": "AVRO", ` +
			`"VersionNumber": 2}`,
		numbered(`"VersionNumber":1`): `{"SchemaDefinition": "1", "DataFormat": "AVRO", ` +
			`"VersionNumber": 1}`,
		`{"SchemaVersionId":"23dd487a-9170-421d-b19d-9b1d29ce30ee"}`: `{"SchemaVersionId": "x", ` +
			`"SchemaDefinition": "\"long\"", "DataFormat": "AVRO", "Status": "AVAILABLE"}`,
		`{"SchemaId":{"RegistryName":"default-registry","SchemaName":"orders"},` +
			`"SchemaVersionNumber":{"LatestVersion":true}}`: `{"SchemaDefinition": "text", ` +
			`"DataFormat": "PROTOBUF"}`,
	}
	denied := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		signed := r.Header.Get("Authorization")
		if err != nil || r.Header.Get("X-Amz-Target") != "AWSGlue.GetSchemaVersion" ||
			!strings.Contains(signed, "Credential=AKID/") ||
			!strings.Contains(signed, "/eu-central-1/glue/aws4_request") {
			t.Errorf("%v, %v", err, r.Header)
		}
		answer, known := answers[string(body)]
		switch {
		case denied:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type": "AccessDeniedException", "message": "not you"}`)
		case !known:
			w.Header().Set("X-Amzn-Errortype", "EntityNotFoundException")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type": "EntityNotFoundException", "message": "gone"}`)
		default:
			fmt.Fprint(w, answer)
		}
	}))
	defer server.Close()
	c := client(t, glueOptions(server.URL))
	known := messageid.UUIDRef(messageid.RefGlue, [16]byte{0x23, 0xdd, 0x48, 0x7a, 0x91, 0x70, 0x42,
		0x1d, 0xb1, 0x9d, 0x9b, 0x1d, 0x29, 0xce, 0x30, 0xee})
	if s, err := c.SchemaOf(t.Context(), known); err != nil || s.Type != "avro" ||
		s.Text != `"long"` {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := c.Newest(t.Context(), "orders"); err != nil || s.Type != "protobuf" ||
		s.Text != "text" {
		t.Errorf("%+v, %v", s, err)
	}
	var versions []string // 3 was deleted
	for s, err := range c.Versions(t.Context(), "both") {
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, s.Text)
	}
	if got := strings.Join(versions, " "); got != "4 2 1" {
		t.Errorf("the versions are %s", got)
	}
	gone := messageid.UUIDRef(messageid.RefGlue, [16]byte{1})
	if _, err := c.SchemaOf(t.Context(), gone); !errors.Is(err, messageid.ErrUnknownSchema) {
		t.Error(err)
	}
	if _, err := c.Newest(t.Context(), "none"); !errors.Is(err, registry.ErrNoSubject) {
		t.Error(err)
	}
	if _, err := c.Schema(t.Context(), 7); err == nil {
		t.Error("Glue has a schema by a number")
	}
	denied = true
	if _, err := c.SchemaOf(t.Context(), known); err == nil || c.Err() == nil ||
		errors.Is(err, messageid.ErrUnknownSchema) ||
		!strings.Contains(err.Error(), "glue:GetSchemaVersion") {
		t.Errorf("a denial: %v, %v", err, c.Err())
	}
	denied = false
	if err := c.Ready(t.Context()); err != nil || c.Err() != nil {
		t.Errorf("after the denial: %v, %v", err, c.Err())
	}
}

// By the manual of Azure's API: it was not seen.
func TestAzureIsAskedByTheID(t *testing.T) {
	const path = "/$schemaGroups/$schemas/23dd487a9170421db19d9b1d29ce30ee"
	server := serve(t, map[string]string{path: `"long"`, "/$schemaGroups/$schemas/" +
		strings.Repeat("0", 32): `404 {"error":{"code":"ItemNotFound","message":"gone"}}`})
	c := client(t, registry.Options{Type: registry.Azure, URLs: []string{server.URL}})
	id := [16]byte{0x23, 0xdd, 0x48, 0x7a, 0x91, 0x70, 0x42, 0x1d, 0xb1, 0x9d, 0x9b, 0x1d, 0x29,
		0xce, 0x30, 0xee}
	s, err := c.SchemaOf(t.Context(), messageid.UUIDRef(messageid.RefAzure, id))
	if err != nil || s.Type != "avro" || s.Text != `"long"` {
		t.Errorf("%+v, %v", s, err)
	}
	_, err = c.SchemaOf(t.Context(), messageid.UUIDRef(messageid.RefAzure, [16]byte{}))
	if !errors.Is(err, messageid.ErrUnknownSchema) {
		t.Error(err)
	}
}
