package command

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func passwordFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte(serverSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// bundled is all that a bundle of a process has, each file behind its name.
func bundled(t *testing.T, url string, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	code, text := kdedup(t.Context(), append(append([]string{"bundle", "-o", path}, flags...),
		url)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, text)
	}
	return unpack(t, path)
}

func unpack(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	archive := tar.NewReader(packed)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			return all.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(header.Name + ":\n")
		if _, err := io.Copy(&all, archive); err != nil {
			t.Fatal(err)
		}
	}
}

// Somebody reports a bug of a process that is not ready, whose profiler is off and whose metrics
// fail: what there is comes, with what is lacking.
func TestABundleHasWhatTheProcessAnswersAndNoMessageIDs(t *testing.T) {
	status, err := os.ReadFile("../process/server/testdata/status.json")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/status":
			_, _ = w.Write(status)
		case "/api/config":
			_, _ = w.Write([]byte("[]"))
		case "/readyz":
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("store: refused"))
		case "/metrics":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("level=WARN msg=odd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := bundled(t, server.URL, "--log", log)
	for _, want := range []string{"version.txt:\nkdedup ", "status.json:\n", "config.json:\n[]",
		"readyz.txt:\nstore: refused", "log.txt:\nlevel=WARN msg=odd", "missing.txt:\n",
		"/metrics answers 500", `"id": "[left out]"`} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in\n%s", want, all)
		}
	}
	if strings.Contains(all, "o-17") || strings.Contains(all, "goroutines.txt") {
		t.Errorf("it has what it should not:\n%s", all)
	}
	if all := bundled(t, server.URL, "--ids"); !strings.Contains(all, "o-17") {
		t.Errorf("--ids: the IDs are missing in\n%s", all)
	}
}

// A script makes one of each process, or one again.
func TestBundlesOfOneSecondStandBesideEachOther(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"process":{"instance":"one"}}`))
	}))
	defer server.Close()
	t.Chdir(t.TempDir())
	for n := range 3 { // two of them at least within one second, whenever it ends
		if code, text := kdedup(t.Context(), "bundle", server.URL); code != 0 {
			t.Fatalf("bundle %d: exit code %d: %s", n, code, text)
		}
	}
	if all, err := filepath.Glob("kdedup-bundle-one-*.tar.gz"); err != nil || len(all) != 3 {
		t.Errorf("%v: %q", err, all)
	}
}

func TestABundleOfNothingIsRefusedAndOverwritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine")
	code, text := kdedup(t.Context(), "bundle", "-o", path, "http://"+nobody(t))
	if _, err := os.Stat(path); code != 1 || err == nil ||
		!strings.Contains(text, "with --log the log") {
		t.Errorf("exit code %d: %s", code, text)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, text = kdedup(t.Context(), "bundle", "-o", path, "--log", path, "http://"+nobody(t))
	if kept, _ := os.ReadFile(path); code != 1 || string(kept) != "mine" ||
		!strings.Contains(text, "file exists") {
		t.Errorf("exit code %d: %s; the file has %q", code, text, kept)
	}
}
