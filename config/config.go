// Package config is the YAML file: its structs with their manual, Default, Load and Validate.
//
// The comments of the structs are the manual: docs/configuration.md is made from them. A comment
// may begin with "Required." and end with a paragraph "Default: ..." where the default is derived
// from something else.
package config

import "time"

//go:generate go run ./internal/gendoc -out ../docs/configuration.md -schema schema.json

// Config is the whole file.
type Config struct {
	// Name of this process within its consumer groups: letters, digits, `.`, `_` and `-`, at most
	// 200. Two processes of one group with equal names abort each other's transactions. Keep the
	// name over restarts: then a new start ends at once the transaction that a crash left open.
	//
	// Default: the host name.
	Instance string `mapstructure:"instance"`
	// How long a stop may take, at least `1s`. kdedup gives up a batch that is not committed by
	// then, and reads it again at the next start.
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout"`
	// The cluster that holds all topics, but for those that `kafka.output` takes.
	Kafka Kafka `mapstructure:"kafka"`
	// Where the claims are kept.
	Store Store `mapstructure:"store"`
	// Where schemas are, for topics whose message IDs need them.
	SchemaRegistry SchemaRegistry `mapstructure:"schema_registry"`
	// The HTTP endpoints for operators.
	Server Server `mapstructure:"server"`
	// What programs in other languages ask.
	API API `mapstructure:"api"`
	// What /metrics shows, and who else gets it.
	Metrics Metrics `mapstructure:"metrics"`
	// Traces of records and batches.
	Tracing Tracing `mapstructure:"tracing"`
	// What is written to standard error.
	Log Log `mapstructure:"log"`
	// Changes of the file while kdedup runs.
	Reload Reload `mapstructure:"reload"`
	// Required. The pipelines, at least one. `kdedup serve` alone needs none.
	Topics []Topic `mapstructure:"topics"`

	// UnknownEnv lists the variables that begin with KDEDUP_ and override nothing, sorted, names
	// only. Load ignores them, because orchestrators inject such variables; log them, because one
	// may be a typing error.
	UnknownEnv []string `mapstructure:"-"`
	// NumberedEnv has the variables that override a setting of an entry and name it by its number,
	// with the input or the pattern of that entry. Another entry in front of it takes them over.
	NumberedEnv map[string]string `mapstructure:"-"`
}

// Reload says when the file is read again. SIGHUP always does it.
type Reload struct {
	// Whether changes of the file, and of the files that its secrets name, are applied by
	// themselves, every 5 s. `false` waits for SIGHUP.
	Watch bool `mapstructure:"watch"`
}

// Log says what is logged, and how.
type Log struct {
	// The least important level that is written: `debug`, `info`, `warn` or `error`.
	Level string `mapstructure:"level"`
	// `text` (key=value) or `json`, one line per event.
	Format string `mapstructure:"format"`
}
