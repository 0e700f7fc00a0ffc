package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Cassandra 5.0 runs on Java 11 and 17, Kafka 4 on Java 17 and later.
const javaVersion = "17"

// FindJava returns the Java 17 program: from JAVA_HOME, from PATH, or from where Linux
// distributions install it. The error says what is there instead and what to install.
func FindJava(ctx context.Context) (string, error) {
	var seen []string
	for _, path := range javaCandidates() {
		version, err := versionOfJava(ctx, path)
		if err != nil {
			continue
		}
		if version == javaVersion {
			return path, nil
		}
		seen = append(seen, fmt.Sprintf("%s is Java %s", path, version))
	}
	return "",
		fmt.Errorf("no Java %s (%s): install it (Debian: openjdk-17-jre-headless) or set JAVA_HOME",
			javaVersion, cmp.Or(strings.Join(seen, ", "), "no java at all"))
}

func javaCandidates() []string {
	var paths []string
	if home := os.Getenv("JAVA_HOME"); home != "" {
		paths = append(paths, filepath.Join(home, "bin", "java"))
	}
	if path, err := exec.LookPath("java"); err == nil {
		paths = append(paths, path)
	}
	installed, _ := filepath.Glob("/usr/lib/jvm/*17*/bin/java")
	return append(paths, installed...)
}

// versionOfJava returns the number of the release, such as "17".
func versionOfJava(ctx context.Context, path string) (string, error) {
	out, err := exec.CommandContext(ctx, path, "-version").CombinedOutput()
	if err != nil {
		return "", err
	}
	return parseJavaVersion(string(out))
}

// parseJavaVersion reads `openjdk version "17.0.15" 2025-04-15`; options that the environment
// injects may come on lines before it. Java 8 calls itself 1.8.
func parseJavaVersion(out string) (string, error) {
	_, rest, found := strings.Cut(out, `version "`)
	if !found {
		return "", errors.New("no version in the output")
	}
	rest = strings.TrimPrefix(rest, "1.")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end <= 0 {
		return "", fmt.Errorf("no number in the version %q", rest)
	}
	return rest[:end], nil
}

// FindMaven returns the Maven program.
func FindMaven() (string, error) {
	path, err := exec.LookPath("mvn")
	if err != nil {
		return "", errors.New("no Maven (mvn) in PATH: install it (Debian: maven)")
	}
	return path, nil
}
