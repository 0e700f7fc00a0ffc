package config

// Places of a message ID.
const (
	FromHeader    = "header"
	FromKey       = "key"
	FromJSON      = "json"
	FromValueHash = "value_hash"
	FromComposite = "composite"
)

// MessageID says where a record carries its ID. Records with equal IDs in one scope are copies of
// one message. A null or empty ID is a missing ID, see `on_missing_id`. Once a scope has claims,
// changing this section stops the next start, because the old claims would mean nothing.
type MessageID struct {
	// Required. `header`: the header `name`. `key`: the record's key. `json`: the field `path` of
	// the value, a JSON document. `value_hash`: SHA-256 of the value, so that equal values are
	// copies. `composite`: all of `parts` together.
	From string `mapstructure:"from"`
	// Name of the header, case-sensitive. Required with `from: header`, refused otherwise.
	Name string `mapstructure:"name"`
	// Place of the field, for example `order.id`; a number is an index into an array, as in
	// `items.0.id`; `\.` is a dot inside a name and `\\` a backslash. Required with `from: json`,
	// refused otherwise.
	Path string `mapstructure:"path"`
	// Two or more places, each with `from` and so on, none of them `composite`. The order matters.
	// If one part is missing, the ID is. Required with `from: composite`, refused otherwise.
	Parts []MessageID `mapstructure:"parts"`
}
