package servers

import (
	"context"
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
	java, err := FindJava(ctx)
	if err != nil {
		return nil, err
	}
	lib, err := jars(ctx, "serializers", serializersVersion)
	if err != nil {
		return nil, err
	}
	return &Serializers{java, filepath.Join(lib, "*")}, nil
}

// FindDebezium is FindSerializers for an embedded Debezium and AWS's converter.
func FindDebezium(ctx context.Context) (*Serializers, error) {
	java, err := FindJava(ctx)
	if err != nil {
		return nil, err
	}
	lib, err := jars(ctx, "debezium", debeziumVersion)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(lib, "*.jar"))
	if err != nil {
		return nil, err
	}
	// the converter holds older classes of what others need, too
	isConverter := func(file string) bool {
		return strings.Contains(filepath.Base(file), "kafkaconnect-converter")
	}
	slices.SortStableFunc(files, func(a, b string) int {
		switch {
		case isConverter(a) == isConverter(b):
			return 0
		case isConverter(a):
			return 1
		}
		return -1
	})
	return &Serializers{java, strings.Join(files, string(filepath.ListSeparator))}, nil
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
