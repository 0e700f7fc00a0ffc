package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("os/signal.signal_recv"),
		goleak.IgnoreTopFunction("os/signal.loop"))
}

// pretend is an engine whose servers exist in name only.
type pretend struct {
	missing error            // why the engine does not work here
	broken  map[string]error // by server, why it does not start
	running atomic.Int32
	starts  atomic.Int32
}

func (p *pretend) engine(name string) engine {
	return engine{
		name: name,
		find: func(context.Context) error { return p.missing },
		start: func(ctx context.Context, name, dir string) (server, error) {
			if err := p.broken[name]; err != nil {
				return nil, err
			}
			p.starts.Add(1)
			p.running.Add(1)
			return pretendServer{p, "addr-of-" + name}, os.MkdirAll(dir, 0o755)
		},
	}
}

type pretendServer struct {
	of   *pretend
	addr string
}

func (s pretendServer) Addr() string { return s.addr }

func (s pretendServer) Stop() error {
	s.of.running.Add(-1)
	return nil
}

// result is what a user sees of a run.
type result struct {
	code        int
	out, stderr string
}

// runWith runs a shell script with servers of these engines.
func runWith(t *testing.T, script string, change func(*options), engines ...engine) result {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var stderr bytes.Buffer
	o := &options{
		want: kinds, engines: engines, command: []string{"sh", "-c", script},
		getenv: func(string) string { return "" }, stdout: out, stderr: &stderr,
	}
	if change != nil {
		change(o)
	}
	code := o.run()
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	return result{code: code, out: string(text), stderr: stderr.String()}
}

const printAddresses = `echo "$KDEDUP_TEST_KAFKA $KDEDUP_TEST_CASSANDRA $KDEDUP_TEST_CASSANDRA_V1"`

func clearEnvironment(t *testing.T) {
	for _, k := range kinds {
		t.Setenv(k.variable, "")
	}
}

func TestTheCommandSeesTheServersAndPassesItsExitCodeOn(t *testing.T) {
	var p pretend
	got := runWith(t, printAddresses+"; exit 7", nil, p.engine("pretend"))
	if want := "addr-of-kafka addr-of-cassandra addr-of-cassandra-v1\n"; got.out != want ||
		got.code != 7 {
		t.Errorf("exit code %d, output %q, want 7, %q", got.code, got.out, want)
	}
	if !strings.Contains(got.stderr, "kafka is addr-of-kafka, after ") {
		t.Errorf("no report of the start:\n%s", got.stderr)
	}
	if p.running.Load() != 0 {
		t.Errorf("%d servers run on", p.running.Load())
	}
}

func TestACommandThatASignalEndsHasTheExitCodeOfAShell(t *testing.T) {
	var p pretend
	if got := runWith(t, "kill -KILL $$", nil, p.engine("pretend")); got.code != 128+9 {
		t.Errorf("exit code %d", got.code)
	}
}

func TestACommandThatDoesNotExistIsAFailureAfterWhichNothingRuns(t *testing.T) {
	var p pretend
	got := runWith(t, "", func(o *options) { o.command = []string{"/no/such/command"} },
		p.engine("pretend"))
	if got.code != exitFailed || !strings.Contains(got.stderr, "/no/such/command") ||
		p.running.Load() != 0 {
		t.Errorf("got %+v, %d servers run on", got, p.running.Load())
	}
}

func TestAddressesOfTheEnvironmentAreUsedAsTheyAre(t *testing.T) {
	clearEnvironment(t)
	t.Setenv(testkit.KafkaEnv, "mine:9092")
	var p pretend
	got := runWith(t, printAddresses, func(o *options) { o.getenv = os.Getenv },
		p.engine("pretend"))
	if want := "mine:9092 addr-of-cassandra addr-of-cassandra-v1\n"; got.out != want ||
		int(p.starts.Load()) != len(kinds)-1 {
		t.Errorf("%d servers started, output %q, want %d, %q", p.starts.Load(), got.out,
			len(kinds)-1, want)
	}
}

func TestTheFirstEngineThatWorksIsUsed(t *testing.T) {
	absent := pretend{missing: errors.New("not installed")}
	var present, spare pretend
	got := runWith(t, "true", nil, absent.engine("absent"), present.engine("present"),
		spare.engine("spare"))
	starts := []int{int(absent.starts.Load()), int(present.starts.Load()), int(spare.starts.Load())}
	if diff := cmp.Diff([]int{0, len(kinds), 0}, starts); diff != "" || got.code != 0 {
		t.Errorf("got %+v, starts: -want +got:\n%s", got, diff)
	}
}

func TestAnEngineWhoseServersDoNotStartGivesWayToTheNext(t *testing.T) {
	broken := pretend{broken: map[string]error{"cassandra": errors.New("no image")}}
	var next pretend
	got := runWith(t, printAddresses, nil, broken.engine("broken"), next.engine("next"))
	if got.code != 0 || int(next.starts.Load()) != len(kinds) || broken.running.Load() != 0 {
		t.Errorf("got %+v, %d started, %d of the broken engine run on", got, next.starts.Load(),
			broken.running.Load())
	}
	if !strings.Contains(got.stderr, "no image") {
		t.Errorf("the reason is not reported:\n%s", got.stderr)
	}
}

func TestEachServerIsStartedInTheFirstWayThatCan(t *testing.T) {
	var some, all pretend
	first := some.engine("first")
	first.only = []string{"kafka"}
	got := runWith(t, printAddresses, nil, first, all.engine("second"))
	if want := "addr-of-kafka addr-of-cassandra addr-of-cassandra-v1\n"; got.code != 0 ||
		got.out != want {
		t.Errorf("got %+v", got)
	}
	if some.starts.Load() != 1 || int(all.starts.Load()) != len(kinds)-1 ||
		some.running.Load()+all.running.Load() != 0 {
		t.Errorf("%d and %d started, %d and %d run on", some.starts.Load(), all.starts.Load(),
			some.running.Load(), all.running.Load())
	}
}

func TestAServerThatNoWayCanStartIsMissing(t *testing.T) {
	var p pretend
	some := p.engine("some")
	some.only = []string{"kafka", "cassandra", "cassandra-v1"}
	absent := pretend{missing: errors.New("no PostgreSQL: install it")}
	for ci, want := range map[bool]result{false: {0, "ran\n", "WARNING"},
		true: {exitFailed, "", "may be skipped"}} {
		got := runWith(t, "echo ran", func(o *options) { o.ci = ci },
			some, absent.engine("programs"))
		if got.code != want.code || got.out != want.out ||
			!strings.Contains(got.stderr, want.stderr) ||
			!strings.Contains(got.stderr, testkit.PostgresEnv) {
			t.Errorf("CI=%v: got %+v", ci, got)
		}
		if p.running.Load() != 0 {
			t.Errorf("%d servers run on", p.running.Load())
		}
	}
}

func TestServersThatDoNotStartAreAFailureWithoutTheCommand(t *testing.T) {
	broken := pretend{broken: map[string]error{"kafka": errors.New("out of memory")}}
	got := runWith(t, "echo ran", nil, broken.engine("broken"))
	if got.code != exitFailed || got.out != "" || broken.running.Load() != 0 {
		t.Errorf("got %+v, %d servers run on", got, broken.running.Load())
	}
	if !strings.Contains(got.stderr, "with broken: out of memory") {
		t.Errorf("the reason is not reported:\n%s", got.stderr)
	}
}

func TestWithoutAnEngineTheCommandRunsAndTheUserIsWarned(t *testing.T) {
	absent := pretend{missing: errors.New("no Java 17: install it")}
	got := runWith(t, "echo ran", nil, absent.engine("java"))
	if got.code != 0 || got.out != "ran\n" {
		t.Errorf("got %+v", got)
	}
	for _, want := range []string{"WARNING", "SKIPPED", "no Java 17: install it",
		testkit.CassandraV1Env} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("no %q in the warning:\n%s", want, got.stderr)
		}
	}
}

func TestWithoutAnEngineContinuousIntegrationFails(t *testing.T) {
	absent := pretend{missing: errors.New("no Java 17: install it")}
	got := runWith(t, "echo ran", func(o *options) { o.ci = true }, absent.engine("java"))
	if got.code != exitFailed || got.out != "" ||
		!strings.Contains(got.stderr, "no Java 17: install it") {
		t.Errorf("got %+v", got)
	}
}

func TestASignalReachesTheCommandAndEverythingIsStopped(t *testing.T) {
	var p pretend
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	done := make(chan result, 1)
	go func() {
		done <- runWith(t, "exec 2>/dev/null; trap 'exit 5' TERM; touch "+ready+
			"; while :; do sleep 0.05; done", nil, p.engine("pretend"))
	}()
	testkit.Eventually(t, time.Minute, "the start of the command", func() bool {
		_, err := os.Stat(ready)
		return err == nil
	})
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.code != 5 || p.running.Load() != 0 {
		t.Errorf("got %+v, %d servers run on", got, p.running.Load())
	}
}

func TestASignalDuringTheStartEndsItWithoutTheCommand(t *testing.T) {
	var p pretend
	slow := p.engine("slow")
	start := slow.start
	slow.start = func(ctx context.Context, name, dir string) (server, error) {
		if name != "kafka" {
			return start(ctx, name, dir)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			return nil, err
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	got := runWith(t, "echo ran", nil, slow)
	if got.code != exitFailed || got.out != "" || p.running.Load() != 0 {
		t.Errorf("got %+v, %d servers run on", got, p.running.Load())
	}
}

func TestTemporaryFilesGoAndNamedOnesStay(t *testing.T) {
	temporary, named := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	var p pretend
	runWith(t, "true", nil, p.engine("pretend"))
	runWith(t, "true", func(o *options) { o.dir = named }, p.engine("pretend"))
	if diff := cmp.Diff(
		[]int{0, len(kinds)}, []int{entries(t, temporary), entries(t, named)},
	); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

func TestParseTakesTheCommandAsItIs(t *testing.T) {
	o, err := parse([]string{"-with", "kafka", "-using", "java", "-dir", "d", "--", "go", "test",
		"-v"}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{o.want, o.engines[0].name, len(o.engines), o.dir, o.command}
	want := []any{kinds[:1], "java", 1, "d", []string{"go", "test", "-v"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(kind{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseRefusesWhatItDoesNotKnow(t *testing.T) {
	for want, args := range map[string][]string{
		"no command":                {"-with", "kafka"},
		`-with: unknown "redis"`:    {"-with", "kafka,redis", "--", "true"},
		`-using: unknown "systemd"`: {"-using", "systemd", "--", "true"},
	} {
		if _, err := parse(args, os.Stderr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want …%s…", args, err, want)
		}
	}
}
