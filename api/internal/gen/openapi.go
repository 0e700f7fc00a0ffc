package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// openAPIFile is what programs read that make a client of an OpenAPI document.
const openAPIFile = "kdedup/v1/openapi.json"

// object is one of JSON, whose keys are written in the order of the alphabet.
type object map[string]any

func writeOpenAPI(files []protoreflect.FileDescriptor) error {
	text, err := openAPI(files)
	if err != nil {
		return err
	}
	return os.WriteFile(openAPIFile, text, 0o644)
}

// openAPI describes the services as they are over plain HTTP: each method is a POST of JSON.
func openAPI(files []protoreflect.FileDescriptor) ([]byte, error) {
	paths, schemas := object{}, object{"Error": errorSchema}
	for _, file := range files {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				path := "/" + string(service.FullName()) + "/" + string(method.Name())
				paths[path] = object{"post": operation(service, method)}
			}
		}
		for i := range file.Messages().Len() {
			message := file.Messages().Get(i)
			schemas[string(message.Name())] = messageSchema(message)
		}
		for i := range file.Enums().Len() {
			enum := file.Enums().Get(i)
			schemas[string(enum.Name())] = enumSchema(enum)
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object{
		"openapi": "3.1.0",
		"info": object{"title": "kdedup", "version": "v1",
			"description": "Whether a message is the first of its ID, and something once per " +
				"key. docs/api.md says what a caller must do with each answer."},
		"servers":  []object{{"url": "http://127.0.0.1:9481"}},
		"security": []object{{"bearer": []string{}}, {"certificate": []string{}}, {}},
		"paths":    paths,
		"components": object{"schemas": schemas, "securitySchemes": object{
			"bearer":      object{"type": "http", "scheme": "bearer"},
			"certificate": object{"type": "mutualTLS"},
		}},
	})
	return text.Bytes(), err
}

// errorSchema is that of every status but 200. The codes are those of docs/api.md.
var errorSchema = object{"type": "object", "properties": object{
	"code":    object{"type": "string", "examples": []string{"invalid_argument"}},
	"message": object{"type": "string"},
}}

func operation(
	service protoreflect.ServiceDescriptor, method protoreflect.MethodDescriptor,
) object {
	content := func(schema object) object {
		return object{"application/json": object{"schema": schema}}
	}
	return object{
		"operationId": string(method.Name()),
		"tags":        []string{string(service.Name())},
		"description": comment(method),
		"requestBody": object{"required": true, "content": content(reference(method.Input()))},
		"responses": object{
			"200": object{"description": "The answer.",
				"content": content(reference(method.Output()))},
			"default": object{"description": "No answer; the code says why.",
				"content": content(object{"$ref": "#/components/schemas/Error"})},
		},
	}
}

func reference(d protoreflect.Descriptor) object {
	return object{"$ref": "#/components/schemas/" + string(d.Name())}
}

// messageSchema says of each field of a oneof which others exclude it.
func messageSchema(message protoreflect.MessageDescriptor) object {
	properties := object{}
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		schema := fieldSchema(field)
		said := comment(field)
		if one := field.ContainingOneof(); one != nil && !one.IsSynthetic() {
			said = strings.TrimSpace("At most one of " + names(one.Fields()) + " is set. " + said)
		}
		if said != "" {
			schema["description"] = said
		}
		properties[field.JSONName()] = schema
	}
	schema := object{"type": "object", "properties": properties}
	if said := comment(message); said != "" {
		schema["description"] = said
	}
	return schema
}

func names(fields protoreflect.FieldDescriptors) string {
	all := make([]string, fields.Len())
	for i := range all {
		all[i] = fields.Get(i).JSONName()
	}
	return strings.Join(all, ", ")
}

func fieldSchema(field protoreflect.FieldDescriptor) object {
	schema := valueSchema(field)
	if field.IsList() {
		return object{"type": "array", "items": schema}
	}
	return schema
}

// valueSchema is the form of a value in the JSON of Protocol Buffers.
func valueSchema(field protoreflect.FieldDescriptor) object {
	switch field.Kind() {
	case protoreflect.BoolKind:
		return object{"type": "boolean"}
	case protoreflect.Int32Kind:
		return object{"type": "integer", "format": "int32"}
	case protoreflect.Int64Kind: // written as text, read as either
		return object{"type": []string{"string", "integer"}, "format": "int64"}
	case protoreflect.StringKind:
		return object{"type": "string"}
	case protoreflect.BytesKind:
		return object{"type": "string", "contentEncoding": "base64"}
	case protoreflect.EnumKind:
		return reference(field.Enum())
	case protoreflect.MessageKind:
		switch field.Message().FullName() {
		case "google.protobuf.Timestamp":
			return object{"type": "string", "format": "date-time"}
		case "google.protobuf.Duration":
			return object{"type": "string", "pattern": `^-?[0-9]+(\.[0-9]{1,9})?s$`}
		}
		return reference(field.Message())
	}
	panic("no schema for fields of the kind " + field.Kind().String()) // by whoever adds one
}

func enumSchema(enum protoreflect.EnumDescriptor) object {
	values := make([]string, enum.Values().Len())
	said := []string{}
	for i := range values {
		value := enum.Values().Get(i)
		values[i] = string(value.Name())
		if text := comment(value); text != "" {
			said = append(said, "`"+values[i]+"`: "+text)
		}
	}
	return object{"type": "string", "enum": values, "description": strings.Join(said, "\n\n")}
}

// comment is what stands before a declaration.
func comment(d protoreflect.Descriptor) string {
	text := d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments
	return strings.Join(strings.Fields(text), " ")
}
