package arch

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
)

// The modules of tests, benchmarks and the sidecar stand in one go.mod with the libraries. Go gives
// an importer those that its packages need and no others, so a module of their own would spare
// nobody a download; what these packages import would. A driver brings up to a dozen.
const mostModulesOfALibrary = 20

func TestALibraryBringsFewModules(t *testing.T) {
	exact := map[string][]string{
		"idempotency": nil,
		"dedup": {"github.com/klauspost/compress", "github.com/pierrec/lz4/v4",
			"github.com/twmb/franz-go", "github.com/twmb/franz-go/pkg/kmsg"},
	}
	for library, want := range exact {
		if got := modulesOf(t, library); !slices.Equal(got, want) {
			t.Errorf("%s brings the modules %v, want %v", library, got, want)
		}
	}
	for _, library := range []string{
		"dedup/claimlog/kafkalog", "dedup/cassandra", "dedup/embedded", "dedup/postgres",
		"dedup/redis", "idempotency/cassandra", "idempotency/embedded", "idempotency/postgres",
	} {
		if got := modulesOf(t, library); len(got) > mostModulesOfALibrary {
			t.Errorf("%s brings %d modules, at most %d are its driver's: %v", library, len(got),
				mostModulesOfALibrary, got)
		}
	}
}

// modulesOf lists the modules, but ours, of the packages that a package imports, in order.
func modulesOf(t *testing.T, library string) []string {
	t.Helper()
	testkit.EachRun()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./"+library)
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v", list, err)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	return slices.Compact(modules)
}
