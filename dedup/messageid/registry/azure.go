package registry

import (
	"context"
	"net/http"
	"strings"

	"github.com/kdedup/kdedup/dedup/messageid"
)

// azureVersion is of the API.
const azureVersion = "2022-10"

// azureSchema asks for a schema by its ID.
func (c *Client) azureSchema(
	ctx context.Context, ref messageid.Ref,
) (s messageid.Schema, err error) {
	var body []byte
	var header http.Header
	err = c.ask(ctx, func(server server) (err error) {
		body, header, err = server.get(ctx,
			"/$schemaGroups/$schemas/"+ref.String()+"?api-version="+azureVersion)
		return err
	})
	if isDenial(err, noSchema) {
		return s, messageid.ErrUnknownSchema
	}
	s = messageid.Schema{Type: messageid.FromAvro, Text: string(body)}
	if strings.Contains(strings.ToLower(header.Get("Content-Type")), "serialization=json") {
		s.Type = messageid.FromJSONSchema
	}
	return s, err
}

// uuids is how records name the schemas of a registry that has neither numbers nor subjects.
func (c *Client) uuids() messageid.RefKind {
	if c.kind == Azure {
		return messageid.RefAzure
	}
	return messageid.RefGlue
}
