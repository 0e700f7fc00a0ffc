package cassandra_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/internal/testkit"
)

// reserved are words that CQL takes for its own where they stand without quotes.
var reserved = []string{
	"add", "allow", "alter", "and", "apply", "asc", "authorize", "batch", "begin", "by",
	"columnfamily", "create", "delete", "desc", "describe", "drop", "entries", "execute",
	"from", "full", "grant", "if", "in", "index", "infinity", "insert", "into", "is",
	"keyspace", "limit", "materialized", "modify", "nan", "norecursive", "not", "null", "of",
	"on", "or", "order", "primary", "rename", "revoke", "schema", "select", "set", "table",
	"to", "token", "truncate", "unlogged", "update", "use", "using", "view", "where", "with",
}

// oddName is one that the configuration admits.
func oddName(random *rand.Rand) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	name := []byte{letters[random.IntN(len(letters))]}
	for range 12 + random.IntN(36) {
		all := letters + "0123456789_"
		name = append(name, all[random.IntN(len(all))])
	}
	return string(name)
}

// Cassandra would make small letters of capitals, and take words for its own.
func TestEveryNameThatIsAdmittedWorks(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	host := testkit.Cassandra(t)
	for _, names := range [][2]string{
		{oddName(random), oddName(random)},
		{oddName(random), reserved[random.IntN(len(reserved))]},
		{reserved[random.IntN(len(reserved))], "Claims"},
	} {
		t.Run(names[0]+"."+names[1], func(t *testing.T) {
			options := optionsFor(t, host)
			options.Keyspace, options.Table = names[0], names[1]
			anywhere := options
			anywhere.Keyspace = "system"
			defer cassandra.Exec(t, anywhere, fmt.Sprintf("DROP KEYSPACE IF EXISTS %q", names[0]))
			create(t, options)
			var again []string
			if err := cassandra.Setup(t.Context(), options, replication, false, func(line string) {
				again = append(again, line)
			}); err != nil {
				t.Fatal(err)
			}
			in := names[0] + "."
			if diff := cmp.Diff([]string{"keyspace " + names[0] + " exists",
				"type " + in + "claim_owner exists", "table " + in + names[1] + " exists",
				"table " + in + "dedup_scopes exists"}, again); diff != "" {
				t.Error(diff)
			}
			work(t, options)
		})
	}
}

// work does with a store whatever kdedup does.
func work(t *testing.T, options cassandra.Options) {
	t.Helper()
	store := open(t, options)
	defer store.Close()
	scope := dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Buckets: 2,
		Extractor: "key", Sliding: true}
	claim := dedup.Claim{ID: "id", Owner: dedup.Coordinates{Offset: 1}}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(store.CheckRights(t.Context()))
	check(store.Register(t.Context(), scope))
	for _, want := range []dedup.Outcome{dedup.Applied, dedup.Exists} {
		answers, err := store.Claim(t.Context(), scope, []dedup.Claim{claim})
		check(err)
		if answers[0].Outcome != want {
			t.Errorf("%v, want %v", answers[0].Outcome, want)
		}
	}
	has, err := store.HasClaims(t.Context(), scope)
	check(err)
	standing, err := store.Find(t.Context(), scope, []dedup.ID{"id"})
	check(err)
	exported := 0
	check(store.Export(t.Context(), scope, func(some []dedup.Standing) error {
		exported += len(some)
		return nil
	}))
	if !has || len(standing) != 1 || exported != 1 {
		t.Errorf("has claims: %v, found %d, exported %d", has, len(standing), exported)
	}
	check(store.Release(t.Context(), scope, "id"))
	_, err = store.Import(t.Context(), scope, standing)
	check(err)
	answer, err := store.Lookup(t.Context(), scope, "id")
	check(err)
	if answer.Owner != claim.Owner {
		t.Errorf("the owner is %+v", answer.Owner)
	}
	amended := scope
	amended.Extractor = "header"
	check(store.Amend(t.Context(), scope, amended))
	check(store.Forget(t.Context(), amended))
}

// Versions before did not quote the name: their setup made a keyspace in small letters, which run
// then did not find.
func TestAKeyspaceThatAnEarlierSetupMadeOfAnotherNameIsTold(t *testing.T) {
	options := optionsFor(t, testkit.Cassandra(t))
	create(t, options)
	folded := options.Keyspace
	options.Keyspace = strings.ToUpper(folded)
	var said []string
	if err := cassandra.Setup(t.Context(), options, replication, true, func(line string) {
		said = append(said, line)
	}); err != nil {
		t.Fatal(err)
	}
	want := "keyspace " + folded + " is not used: a setup of an earlier version may have made it " +
		"of the name " + options.Keyspace
	if len(said) == 0 || said[len(said)-1] != want {
		t.Errorf("said %q", said)
	}
}
