package config

import (
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/kdedup/kdedup/config/editdistance"
)

// keys yields the settings of a struct with their names in the file, in the order of the struct.
func keys(t reflect.Type) iter.Seq2[string, reflect.StructField] {
	return func(yield func(string, reflect.StructField) bool) {
		for field := range t.Fields() {
			if key := field.Tag.Get("mapstructure"); key != "-" && !yield(key, field) {
				return
			}
		}
	}
}

func keysOf(t reflect.Type) []string {
	var names []string
	for key := range keys(t) {
		names = append(names, key)
	}
	return names
}

func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for key, field := range keys(t) {
		if key == name {
			return field, true
		}
	}
	return reflect.StructField{}, false
}

// join appends a key to a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// didYouMean is the remedy for a name that is close to one of the known ones, or what others call
// one of them, or empty.
func didYouMean(name string, known []string) string {
	for _, candidate := range known {
		if slices.Contains(elsewhere[candidate], plain(name)) {
			return "did you mean " + candidate + "?"
		}
	}
	if best := editdistance.Closest(name, known, plain); best != "" {
		return "did you mean " + best + "?"
	}
	return ""
}

// elsewhere are the names that settings have in other programs and in drivers, in plain letters.
var elsewhere = map[string][]string{
	"local_dc":  {"datacentre", "datacenter", "dc", "localdatacenter", "localdatacentre"},
	"addresses": {"hosts", "host", "nodes", "endpoints", "url", "urls"},
	"hosts":     {"addresses", "address", "contactpoints", "nodes", "endpoints", "seeds"},
	"brokers": {"bootstrapservers", "bootstrap", "servers", "seeds", "hosts",
		"addresses"},
	"consumer_group":    {"group", "groupid", "consumergroupid"},
	"input":             {"topic", "source", "from", "inputtopic", "in"},
	"output":            {"sink", "target", "destination", "to", "outputtopic", "out", "clean"},
	"dead_letter_topic": {"dlq", "dlqtopic", "deadletterqueue", "deadletter"},
	"username":          {"user", "login"},
	"database":          {"db", "dbname"},
	"message_id":        {"id", "key", "dedupkey", "dedupid"},
	"ttl":               {"window", "retention", "expiry", "expiration", "duration"},
	"mechanism":         {"type", "mechanisms", "saslmechanism"},
	"lanes":             {"workers", "concurrency", "parallelism", "threads"},
	"delivery":          {"processingguarantee", "guarantee", "semantics"},
	"start":             {"autooffsetreset", "startoffset", "offsetreset"},
	"batch_records":     {"maxpollrecords", "batchsize"},
	"name":              {"header", "key", "field"},
	"path":              {"field", "pointer", "jsonpath", "directory", "dir"},
	"listen":            {"address", "addr", "port", "bind"},
}

// plain takes away what people write differently: case, dashes and underscores.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(name))
}
