package servers

import (
	"context"
	"os/exec"
	"path/filepath"
)

// serializersVersion is that of Apicurio's serializer, which names the folder of all of them.
const serializersVersion = "3.1.7"

// Serializers runs programs of one file of Java, with the serializers of serializers/pom.xml and a
// Kafka client.
type Serializers struct{ java, lib string }

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
	return &Serializers{java, lib}, nil
}

// Run compiles a file with a program and runs it to its end, with the credentials that any moto
// takes.
func (s *Serializers) Run(ctx context.Context, args ...string) error {
	flags := []string{"-Xmx256m", "-cp", filepath.Join(s.lib, "*")}
	cmd := exec.Command(s.java, append(flags, args...)...)
	cmd.Env = append(cmd.Environ(), AnyCredentials...)
	return runTool(ctx, cmd)
}

// AnyCredentials are variables of an environment with credentials of AWS, which moto does not
// check.
var AnyCredentials = []string{"AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any"}
