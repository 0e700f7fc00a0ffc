package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

// doomedEnv is the directory of a process that dies in its first put.
const doomedEnv = "UNIQUESTORE_TEST_DOOMED"

func TestMain(m *testing.M) {
	if data := os.Getenv(doomedEnv); data != "" {
		fmt.Println(dieInPut(data))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const lease = time.Second

// dieInPut is killed when the object is written, and before its checksum is completed.
func dieInPut(data string) error {
	s := settings{data: data, lease: lease}
	store, _, err := open(context.Background(), s)
	if err != nil {
		return err
	}
	store.write = func(id string, content []byte) error {
		if err := writeObject(objects(s), id, content); err != nil {
			return err
		}
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	_, err = store.put(context.Background(), []byte("tea"))
	return err
}

func TestTheCommandsOfTheReadmeDoWhatItSays(t *testing.T) {
	testkit.RunReadme(t, "../..", testkit.ReadmeCommands(t))
}

// ownSchema is the URL of a schema that goes with the test.
func ownSchema(t *testing.T) string {
	t.Helper()
	server, schema := testkit.Postgres(t), testkit.Schema(t)
	execute := func(sql string) {
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, "postgres://postgres@"+server+"/postgres")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	execute("CREATE SCHEMA " + schema)
	t.Cleanup(func() { execute("DROP SCHEMA " + schema + " CASCADE") })
	return "postgres://postgres@" + server + "/postgres?search_path=" + schema
}

func openStore(t *testing.T, s settings) *uniqueStore {
	t.Helper()
	store, closeStore, err := open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeStore(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func TestPutsAtOnceOfOneContentMakeOneObject(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"files": func(*testing.T) string { return "" }, "postgres": ownSchema,
	} {
		t.Run(name, func(t *testing.T) {
			const contents, puts = 5, 20
			s := settings{data: t.TempDir(), postgres: url(t), lease: 30 * time.Second}
			store := openStore(t, s)
			var ids [contents][puts]string
			var wg sync.WaitGroup
			for c := range contents {
				for p := range puts {
					wg.Go(func() {
						var err error
						if ids[c][p], err = store.put(
							t.Context(), fmt.Append(nil, "content ", c),
						); err != nil {
							t.Error(err)
						}
					})
				}
			}
			wg.Wait()
			different := make(map[string]bool)
			for c := range contents {
				for _, id := range ids[c] {
					different[id] = true
					if got, err := readObject(objects(s), id); err != nil ||
						string(got) != fmt.Sprint("content ", c) {
						t.Errorf("content %d: object %s holds %q, %v", c, id, got, err)
					}
				}
			}
			if files, err := os.ReadDir(objects(s)); err != nil || len(files) != contents ||
				len(different) != contents {
				t.Errorf("%d files and %d ids for %d contents, %v", len(files), len(different),
					contents, err)
			}
		})
	}
}

func TestAPutThatDiedLeavesNoChecksumOfNothing(t *testing.T) {
	s := settings{data: t.TempDir(), lease: lease}
	doomed := exec.CommandContext(t.Context(), os.Args[0])
	doomed.Env = append(os.Environ(), doomedEnv+"="+s.data)
	if out, err := doomed.CombinedOutput(); err == nil || err.Error() != "signal: killed" {
		t.Fatalf("%v\n%s", err, out)
	}
	if files, err := os.ReadDir(objects(s)); err != nil || len(files) != 1 {
		t.Fatalf("the dead put left %d objects, %v", len(files), err)
	}
	store := openStore(t, s)
	var ids [2]string
	for i := range ids {
		var err error
		if ids[i], err = store.put(t.Context(), []byte("tea")); err != nil {
			t.Fatal(err)
		}
		if got, err := readObject(objects(s), ids[i]); err != nil || string(got) != "tea" {
			t.Errorf("object %s holds %q, %v", ids[i], got, err)
		}
	}
	if ids[0] != ids[1] {
		t.Errorf("two objects, %s and %s", ids[0], ids[1])
	}
}

func TestAnIDIsNoPath(t *testing.T) {
	s := settings{data: t.TempDir(), lease: lease}
	openStore(t, s)
	if err := os.WriteFile(s.data+"/secret", []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := readObject(objects(s), "../secret"); err == nil {
		t.Errorf("read %q", got)
	}
}
