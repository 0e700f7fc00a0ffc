package config

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzLoad: any bytes give either errors that name something, or a configuration that is valid.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"../examples/*.yaml", "../deploy/*/kdedup.yaml",
		"testdata/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte(minimal))
	env := environment([]string{
		"A=alpha", "KDEDUP_TOPICS_0_TTL=1h", "KDEDUP_KAFKA_BROKERS=a,b",
		"KDEDUP_TOPICS_0_MESSAGE_ID_PARTS_1_PATH=a.b",
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &problems{places: map[string]string{}}
		c := parse(data, env, p)
		if len(p.found) == 0 {
			if err := c.Validate(); err != nil {
				t.Errorf("parse accepted what Validate refuses: %v", err)
			}
		}
		for _, e := range p.found {
			if e.Problem == "" {
				t.Errorf("an error says nothing: %+v", e)
			}
		}
	})
}
