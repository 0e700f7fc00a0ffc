package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
)

func TestContainersStartAnswerAndStop(t *testing.T) {
	for name, start := range map[string]func(context.Context, string) (*Container, error){
		"kafka": func(ctx context.Context, dir string) (*Container, error) {
			return StartKafkaContainer(ctx, KafkaOptions{Dir: dir})
		},
		"cassandra": func(ctx context.Context, dir string) (*Container, error) {
			return StartCassandraContainer(ctx, CassandraOptions{Dir: dir})
		},
	} {
		t.Run(name, func(t *testing.T) {
			useFakeDocker(t)
			if err := FindDocker(t.Context()); err != nil {
				t.Fatal(err)
			}
			c, err := start(t.Context(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(c.Log(), "published on "+c.Addr()) {
				t.Errorf("unexpected log: %s", c.Log())
			}
			if err := c.Stop(); err != nil {
				t.Fatal(err)
			}
			if _, err := net.Dial("tcp", c.Addr()); err == nil {
				t.Error("it still listens after its stop")
			}
		})
	}
}

func TestContainerThatEndsByItselfIsReportedWithItsLog(t *testing.T) {
	useFakeDocker(t)
	_, err := StartCassandraContainer(t.Context(),
		CassandraOptions{Dir: t.TempDir(), Heap: "too much"})
	if err == nil || !strings.Contains(err.Error(), "ended by itself") ||
		!strings.Contains(err.Error(), "no memory") {
		t.Fatalf("got %v", err)
	}
}

func TestFindDockerSaysWhyThereIsNone(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := FindDocker(t.Context()); err == nil || err.Error() != "no docker in PATH" {
		t.Fatalf("got %v", err)
	}
}

func TestRunArgsPublishOnLoopbackUnderTheSamePort(t *testing.T) {
	got := runArgs("kdedup-test-1", "image:1", 15000, map[string]string{"B": "2", "A": "1"})
	want := []string{
		"run", "--rm", "--init", "--name", "kdedup-test-1", "-p", "127.0.0.1:15000:15000",
		"-e", "A=1", "-e", "B=2", "image:1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}

func useFakeDocker(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(linkTestBinary(t, dockerName))+":"+os.Getenv("PATH"))
}

// playDocker is a docker that has every image and runs Kafka and Cassandra containers.
func playDocker(args []string) error {
	switch {
	case args[0] == "info", args[0] == "image" && args[1] == "inspect":
		return nil
	case args[0] == "run":
		return playContainer(args[len(args)-1], args)
	}
	return fmt.Errorf("unexpected docker %q", args)
}

func playContainer(image string, args []string) error {
	var port int
	for i, arg := range args {
		if arg == "-p" {
			if _, err := fmt.Sscanf(args[i+1], "127.0.0.1:%d:", &port); err != nil {
				return err
			}
		}
		if arg == "MAX_HEAP_SIZE=too much" {
			return errors.New("no memory")
		}
	}
	stopped, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	fmt.Printf("published on 127.0.0.1:%d\n", port)
	if strings.HasPrefix(image, KafkaImage) {
		cluster, err := kfake.NewCluster(kfake.Ports(port))
		if err != nil {
			return err
		}
		defer cluster.Close()
	} else {
		l, err := net.Listen("tcp", address(loopback, port))
		if err != nil {
			return err
		}
		defer l.Close()
		go serveCQL(l, cqlFrame(cqlReady, ""), cqlFrame(cqlResult, "\x00\x00\x00\x01"))
	}
	<-stopped.Done()
	return nil
}
