package servers

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// serializersVersion is that of Apicurio's serializer, which names the folder of all of them.
const serializersVersion = "3.1.7"

const debeziumVersion = "3.6.1.Final"

// Serializers runs programs of one file of Java, with the serializers of serializers/pom.xml and a
// Kafka client, or with those of another pom.
type Serializers struct{ java, classes string }

// FindSerializers downloads what is not there yet.
func FindSerializers(ctx context.Context) (*Serializers, error) {
	s, _, err := findClasses(ctx, "serializers", serializersVersion)
	return s, err
}

// FindDebezium is FindSerializers for an embedded Debezium and AWS's converter.
func FindDebezium(ctx context.Context) (*Serializers, error) {
	s, lib, err := findClasses(ctx, "debezium", debeziumVersion)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(lib, "*.jar"))
	if err != nil {
		return nil, err
	}
	// The converter comes last: it holds older classes of what others need, too.
	converter := slices.IndexFunc(files, func(file string) bool {
		return strings.Contains(filepath.Base(file), "kafkaconnect-converter")
	})
	if converter < 0 {
		return nil, fmt.Errorf("%s has no converter of AWS", lib)
	}
	files = append(files, files[converter])
	files = slices.Delete(files, converter, converter+1)
	s.classes = strings.Join(files, string(filepath.ListSeparator))
	return s, nil
}

// findClasses downloads those of a pom into the folder lib.
func findClasses(ctx context.Context, pom, version string) (s *Serializers, lib string, err error) {
	java, err := FindJava(ctx)
	if err != nil {
		return nil, "", err
	}
	lib, err = jars(ctx, pom, version)
	if err != nil {
		return nil, "", err
	}
	return &Serializers{java, filepath.Join(lib, "*")}, lib, nil
}

// Run compiles a file with a program and runs it to its end, with the credentials that any moto
// takes.
func (s *Serializers) Run(ctx context.Context, args ...string) error {
	flags := []string{"-Xmx256m", "-cp", s.classes}
	cmd := exec.Command(s.java, append(flags, args...)...)
	cmd.Env = append(cmd.Environ(), AnyCredentials...)
	return runTool(ctx, cmd)
}

// AnyCredentials are variables of an environment with credentials of AWS, which moto does not
// check.
var AnyCredentials = []string{"AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any"}
