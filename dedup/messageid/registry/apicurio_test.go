package registry

import "testing"

func TestWhatASchemaIsShowsInItsText(t *testing.T) {
	for text, want := range map[string]string{
		`"string"`: "avro",
		`{"type":"string","avro.java.string":"String"}`:                          "avro",
		`{"type":"string","title":"an ID"}`:                                      "json_schema",
		`["null","long"]`:                                                        "avro",
		`{"type":"record","name":"A","fields":[]}`:                               "avro",
		`{"type":"error","name":"A","fields":[]}`:                                "avro",
		`{"type":"array","items":"string"}`:                                      "avro",
		`{"type":"array","items":{"type":"record","name":"A","fields":[]}}`:      "avro",
		`{"type":"array","items":{"type":"object"}}`:                             "json_schema",
		`{"type":"array","items":{"type":"string","avro.java.string":"String"}}`: "avro",
		`{"type":"array"}`:                                                       "json_schema",
		`{"$schema":"http://json-schema.org/draft-07/schema#"}`:                  "json_schema",
		`syntax = "proto3"; message A { string id = 1; }`:                        "protobuf",
	} {
		if got := typeOfContent([]byte(text)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
