package api

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/dedup/storetest"
)

func openEmbedded(t testing.TB, path string) *embedded.Store {
	t.Helper()
	store, err := embedded.Open(embedded.Options{Path: path, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// The promises of a store are those of the API, whichever door a caller takes.
func TestTheAPIKeepsThePromisesOfAStore(t *testing.T) {
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "gRPC" {
				t.Skip("one protocol is enough for -short")
			}
			storetest.Run(t, func(t *testing.T) dedup.Store {
				path := t.TempDir()
				return &reopened{throughAPI(t, openEmbedded(t, path), options...), path}
			}, storetest.Features{
				ExpiryGranularity: 100 * time.Millisecond,
				Reopen: func(t *testing.T, store dedup.Store) dedup.Store {
					was := store.(*reopened)
					if err := was.Close(); err != nil {
						t.Fatal(err)
					}
					return throughAPI(t, openEmbedded(t, was.path), options...)
				},
			})
		})
	}
}

// reopened can be served again from its files.
type reopened struct {
	*remote
	path string
}
