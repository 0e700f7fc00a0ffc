package config

import (
	"reflect"
	"strings"
)

// Differences lists the settings outside of topics that are not the same in both configurations, by
// their paths. The settings of a store that neither uses are left out.
func (c Config) Differences(other Config) (paths []string) {
	walk(reflect.ValueOf(c), reflect.ValueOf(other), "",
		func(path string, one, another reflect.Value) {
			inTopics := strings.HasPrefix(path, "topics[")
			unused := c.unused(path) && other.unused(path)
			if !inTopics && !unused && !reflect.DeepEqual(one.Interface(), another.Interface()) {
				paths = append(paths, path)
			}
		})
	return paths
}
