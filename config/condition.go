package config

import "fmt"

// Condition says which records have a message ID, by what they have in a place, for example `{from:
// header, name: type, is: [order]}`. All others are forwarded as they are: verdict `exempt`. A
// record whose place cannot be read is treated as if it had the value. You may change the section
// at any time.
type Condition struct {
	// Place of the value: `header`, `key`, `json`, `avro` or `protobuf`. Required with any of the
	// others.
	From string `mapstructure:"from"`
	// Name of the header, with `from: header`.
	Name string `mapstructure:"name"`
	// With `from: header`, whether the case of the name's letters counts: `exact` or `any`.
	//
	// Default: `exact`.
	HeaderCase string `mapstructure:"header_case"`
	// Place of the field in a document.
	Path string `mapstructure:"path"`
	// What of the record is the document: `value` or `key`.
	//
	// Default: `value`.
	Part string `mapstructure:"part"`
	// The values that hold, byte for byte as they are written. Empty: any value that is not empty
	// or null.
	Is []string `mapstructure:"is"`
}

// Place is where the value stands.
func (c Condition) Place() MessageID {
	return MessageID{From: c.From, Name: c.Name, HeaderCase: c.HeaderCase, Path: c.Path,
		Part: c.Part}
}

func (c Condition) check(p *problems, path string) {
	if c.From == "" && c.Name == "" && c.Path == "" && c.Part == "" && len(c.Is) == 0 &&
		c.HeaderCase == "" {
		return
	}
	c.Place().checkPlace(p, path, []string{FromHeader, FromKey, FromJSON, FromAvro,
		FromProtobuf})
	if c.Path == WholePath && (c.From == FromAvro || c.From == FromProtobuf) {
		checkField(p, path+".path", c.Path)
	}
	for i, value := range c.Is {
		if value == "" {
			p.add(fmt.Sprintf("%s.is[%d]", path, i),
				"leave the list empty for any value that is not empty", "must not be empty")
		}
	}
}
