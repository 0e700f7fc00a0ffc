package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/kdedup/kdedup/dedup/messageid"
)

// Types of a registry.
const (
	Confluent = "confluent" // the default: one that speaks Confluent's API
	Apicurio  = "apicurio"  // Apicurio's own API, version 3
	Glue      = "glue"      // the AWS Glue schema registry
	Azure     = "azure"     // that of Azure Event Hubs
	Files     = "files"     // none: all schemas are in files
)

// apicurioAPI is below the address of a registry.
const apicurioAPI = "/apis/registry/v3"

// apicurioSchema asks for one of Apicurio's numbers.
func (c *Client) apicurioSchema(
	ctx context.Context, ref messageid.Ref,
) (messageid.Schema, error) {
	at := fmt.Sprintf("%s/ids/contentIds/%d", apicurioAPI, ref.Number())
	if ref.Kind == messageid.RefGlobalID {
		at = fmt.Sprintf("%s/ids/globalIds/%d", apicurioAPI, ref.Number())
	}
	return c.apicurioContent(ctx, at, at+"/references")
}

// apicurioNewest is the newest version of the artifact that the serializers make of a subject.
func (c *Client) apicurioNewest(
	ctx context.Context, subject string,
) (messageid.Schema, error) {
	at := versionOf("default", subject, "branch=latest")
	return c.apicurioContent(ctx, at+"/content", at+"/references")
}

func versionOf(group, artifact, version string) string {
	return apicurioAPI + "/groups/" + url.PathEscape(group) + "/artifacts/" +
		url.PathEscape(artifact) + "/versions/" + url.PathEscape(version)
}

func (c *Client) apicurioContent(
	ctx context.Context, at, references string,
) (s messageid.Schema, err error) {
	body, err := c.apicurioGet(ctx, at)
	if err != nil {
		return s, err
	}
	s = messageid.Schema{Type: typeOfContent(body), Text: string(body)}
	return s, c.apicurioFollow(ctx, references, &s, make(needed))
}

func (c *Client) apicurioGet(ctx context.Context, at string) (body []byte, err error) {
	err = c.ask(ctx, func(s server) (err error) {
		body, _, err = s.get(ctx, at)
		return err
	})
	if isDenial(err, noSchema) {
		return nil, messageid.ErrUnknownSchema
	}
	return body, err
}

// apicurioFollow appends what references need before them.
func (c *Client) apicurioFollow(
	ctx context.Context, at string, whole *messageid.Schema, seen needed,
) error {
	body, err := c.apicurioGet(ctx, at)
	if err != nil {
		return err
	}
	var all []struct{ GroupID, ArtifactID, Version, Name string }
	if err := json.Unmarshal(body, &all); err != nil {
		return fmt.Errorf("schema_registry: the references of a schema: %w", err)
	}
	for _, r := range all {
		if fresh, err := seen.add(r.Name); err != nil {
			return err
		} else if !fresh {
			continue
		}
		if r.GroupID == "" {
			r.GroupID = "default"
		}
		version := versionOf(r.GroupID, r.ArtifactID, r.Version)
		text, err := c.apicurioGet(ctx, version+"/content")
		if err == nil {
			err = c.apicurioFollow(ctx, version+"/references", whole, seen)
		}
		if err != nil {
			return err
		}
		whole.References = append(whole.References,
			messageid.Reference{Name: r.Name, Text: string(text)})
	}
	return nil
}

// typeOfContent tells what a schema is by its text: Apicurio does not say it of a content.
func typeOfContent(text []byte) string {
	var schema any
	if json.Unmarshal(text, &schema) != nil {
		return messageid.FromProtobuf
	}
	return typeOfDocument(schema)
}

// typeOfDocument goes by words that one of Avro and JSON Schema has. A text is in both.
func typeOfDocument(schema any) string {
	object, is := schema.(map[string]any)
	if !is {
		return messageid.FromAvro // a name, or a union
	}
	switch object["type"] {
	case "record", "error", "enum", "fixed", "map", "bytes", "long", "int", "float", "double":
		return messageid.FromAvro
	case "array":
		if items, has := object["items"]; has {
			return typeOfDocument(items)
		}
	case "string":
		// as serializers of Java write a text
		if _, has := object["avro.java.string"]; has {
			return messageid.FromAvro
		}
	}
	return messageid.FromJSONSchema
}
