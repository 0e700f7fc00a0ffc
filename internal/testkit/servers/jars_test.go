package servers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestJarsAreDownloadedOnceAndTakenFromTheCacheAfterwards(t *testing.T) {
	downloads := useFakeMaven(t,
		`for last; do :; done; touch "${last#-DoutputDirectory=}/server.jar"`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			dir, err := jars(t.Context(), "kafka", kafkaVersion)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(filepath.Join(dir, "server.jar")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := downloads(); n != 1 {
		t.Fatalf("%d downloads, want 1", n)
	}
}

func TestJarsOfABrokenDownloadAreDownloadedAgain(t *testing.T) {
	downloads := useFakeMaven(t, `echo "no such artifact"; exit 1`)
	_, err := jars(t.Context(), "kafka", kafkaVersion)
	if err == nil || !strings.Contains(err.Error(), "no such artifact") {
		t.Fatalf("got %v, want Maven's words", err)
	}
	if _, err := jars(t.Context(), "kafka", kafkaVersion); err == nil {
		t.Fatal("the broken download was taken for complete")
	}
	if n := downloads(); n != 2 {
		t.Fatalf("%d downloads, want 2", n)
	}
}

func TestWaitingForTheCacheEndsWithTheContext(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "lock")
	err := underLock(t.Context(), lock, func() error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return underLock(ctx, lock, func() error { return errors.New("held twice") })
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
}

func TestPomsNameTheVersions(t *testing.T) {
	for name, artifact := range map[string]string{
		"kafka":  "<artifactId>kafka_2.13</artifactId><version>" + kafkaVersion + "</version>",
		"mirror": "<artifactId>connect-mirror</artifactId><version>" + kafkaVersion + "</version>",
		"cassandra": "<artifactId>cassandra-all</artifactId><version>" + cassandraVersion +
			"</version>",
		"registry": "<artifactId>apicurio-registry-app</artifactId><version>" + registryVersion +
			"</version>",
		"serializers": "<artifactId>apicurio-registry-avro-serde-kafka</artifactId><version>" +
			serializersVersion + "</version>",
		"debezium": "<artifactId>debezium-embedded</artifactId><version>" + debeziumVersion +
			"</version>",
	} {
		pom, err := embedded.ReadFile(name + "/pom.xml")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(pom), artifact) {
			t.Errorf("%s/pom.xml: no %s", name, artifact)
		}
	}
}

// useFakeMaven puts a mvn into PATH that runs script, and gives the cache a folder of its own. The
// result counts the runs.
func useFakeMaven(t *testing.T, script string) (runs func() int) {
	t.Helper()
	return useFake(t, "mvn", script)
}

func useFake(t *testing.T, program, script string) (runs func() int) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "runs")
	text := "#!/bin/sh\necho run >> '" + log + "'\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, program), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("HOME", dir) // the cache of macOS
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	return func() int {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "run\n")
	}
}
