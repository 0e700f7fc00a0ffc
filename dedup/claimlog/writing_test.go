package claimlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/testkit"
)

// earlierLog is the log of a group that a version before this one has begun.
func earlierLog(t *testing.T, shards int) *fakeLogs {
	t.Helper()
	logs := newFakeLogs(shards)
	text := bytes.Replace(newAgreement(shards), []byte(`"version":2`), []byte(`"version":1`), 1)
	if _, err := logs.Registry(testScope.ConsumerGroup).Decide(t.Context(), agreementKey,
		text); err != nil {
		t.Fatal(err)
	}
	return logs
}

// versions of the blocks in a log.
func versions(logs *fakeLogs) (found []byte) {
	for _, e := range logs.entries(testScope.ConsumerGroup)[0] {
		found = append(found, e.Block[2])
	}
	return found
}

// earlier is a process of a version before this one, which takes part in the log by its machine.
type earlier struct {
	t       *testing.T
	logs    *fakeLogs
	machine *machine
	number  uint64
}

func newEarlier(t *testing.T, logs *fakeLogs) *earlier {
	t.Helper()
	text, err := logs.Registry(testScope.ConsumerGroup).Decided(t.Context(), agreementKey)
	if err != nil {
		t.Fatal(err)
	}
	agreed, err := parseAgreement(text, 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMachine(newMemoryIndex(), "1", agreed)
	if err != nil {
		t.Fatal(err)
	}
	m.shards[0].Position, m.ahead[0] = Position{}, Position{}
	return &earlier{t: t, logs: logs, machine: m}
}

// claim appends a block of the first version, and reads up to it. It returns errNewer at a block
// that the version does not know.
func (e *earlier) claim(id string, offset int64) (answer dedup.Answer, err error) {
	e.t.Helper()
	read := func(told func(int, dedup.Answer)) {
		for _, entry := range e.logs.entries(testScope.ConsumerGroup)[0] {
			if entry.At < e.machine.shards[0].Next || err != nil {
				continue
			}
			if len(entry.Block) > 2 && entry.Block[2] > firstVersion {
				err = errNewer
				return
			}
			err = e.machine.apply(e.t.Context(), entry, func(id blockID) func(int, dedup.Answer) {
				if id == (blockID{7, e.number}) {
					return told
				}
				return nil
			})
		}
	}
	read(nil)
	if err != nil {
		return answer, err
	}
	e.number++
	claims := []dedup.Claim{claimOf(id, offset)}
	free, _, _, err := e.machine.divide(0, &dedup.Scope{Name: testScope.Name}, claims, places(1))
	if err != nil {
		e.t.Fatal(err)
	}
	h := head{log: e.machine.agreed.ID, id: blockID{7, e.number}, scope: testScope.Name}
	seen := e.machine.shards[0].sight()
	if seen.Next == 0 {
		seen.Epoch = -1
	}
	e.logs.stand(testScope.ConsumerGroup, 0,
		claimsBlock(nil, h, testScope.TTL, seen, claims, free), time.Hour)
	read(func(_ int, a dedup.Answer) { answer = a })
	if len(free) == 0 && err == nil {
		answer, err = e.machine.lookup(0, testScope.Name, dedup.ID(id), 0)
	}
	return answer, err
}

func TestALogThatThisVersionBeganHasItsBlocksOnly(t *testing.T) {
	logs := newFakeLogs(1)
	s := open(t, Options{Opener: logs})
	mustClaim(t, s, claimOf("a", 1))
	if got := versions(logs); !bytes.Equal(got, []byte{version}) {
		t.Error(got)
	}
}

// A rolling upgrade: processes of both versions share a log, and come to the same verdicts.
func TestAnEarlierVersionGoesOnBesideThisOne(t *testing.T) {
	logs := earlierLog(t, 1)
	old := newEarlier(t, logs)
	answer, err := old.claim("a", 1)
	if err != nil {
		t.Fatal(err)
	}
	wantOwner(t, answer, dedup.Applied, 1)
	s := open(t, Options{Opener: logs})
	wantOwner(t, mustClaim(t, s, claimOf("a", 2)), dedup.Exists, 1)
	wantOwner(t, mustClaim(t, s, claimOf("b", 3)), dedup.Applied, 3)
	if answer, err = old.claim("b", 4); err != nil {
		t.Fatal(err)
	}
	wantOwner(t, answer, dedup.Exists, 3)
	if answer, err = old.claim("c", 5); err != nil {
		t.Fatal(err)
	}
	wantOwner(t, answer, dedup.Applied, 5)
	wantOwner(t, mustClaim(t, s, claimOf("c", 6)), dedup.Exists, 5)
	if got := versions(logs); bytes.IndexByte(got, version) >= 0 {
		t.Errorf("a block that the earlier version does not read: %v", got)
	}
}

// settled opens a store that waits for a little while before it takes all others for upgraded.
func settled(t *testing.T, logs *fakeLogs, settle time.Duration) *Store {
	t.Helper()
	times := quick
	times.settle = settle
	s := Open(Options{Opener: logs, times: times, now: func() time.Time { return logs.now() }})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Once no process of an earlier version writes any more, blocks are of the present one; a process
// of an earlier version stops there, before it decides anything otherwise.
func TestBlocksAreOfThisVersionOnceNoEarlierOneWrites(t *testing.T) {
	logs := earlierLog(t, 1)
	old := newEarlier(t, logs)
	if _, err := old.claim("a", 1); err != nil {
		t.Fatal(err)
	}
	first, second := settled(t, logs, 50*time.Millisecond), settled(t, logs, time.Hour)
	wantOwner(t, mustClaim(t, second, claimOf("b", 2)), dedup.Applied, 2)
	n := int64(10)
	testkit.Eventually(t, 30*time.Second, "a block of this version", func() bool {
		n++
		mustClaim(t, first, claimOf("c", n))
		return bytes.IndexByte(versions(logs), version) >= 0
	})
	if _, err := old.claim("d", 5); !errors.Is(err, errNewer) {
		t.Fatalf("the earlier version goes on: %v", err)
	}
	// Who meets such a block writes them, too.
	wantOwner(t, mustClaim(t, second, claimOf("a", 6)), dedup.Exists, 1)
	wantOwner(t, mustClaim(t, second, claimOf("e", 7)), dedup.Applied, 7)
	if got := versions(logs); got[len(got)-1] != version {
		t.Errorf("behind a block of this version comes one of an earlier: %v", got)
	}
}

// A block of an earlier version that comes to stand behind one of this version counts for nothing
// in any process. Its writer, which read neither, is told so, or writes it again.
func TestABlockOfAnEarlierVersionBehindANewerOneCountsForNothing(t *testing.T) {
	logs := earlierLog(t, 1)
	old := newEarlier(t, logs)
	if _, err := old.claim("a", 1); err != nil {
		t.Fatal(err)
	}
	s := settled(t, logs, time.Hour)
	mustClaim(t, s, claimOf("b", 2))
	newer := func() { // of a process that has settled
		m := old.machine
		h := head{version: version, log: m.agreed.ID, id: blockID{9, 1}, scope: testScope.Name,
			written: time.Now().UnixMilli()}
		logs.stand(testScope.ConsumerGroup, 0, forgetBlock(head{version: version, log: m.agreed.ID,
			id: h.id, written: h.written, scope: "another"}), time.Hour)
	}
	logs.beforeNext.Store(&newer)
	err := s.Release(t.Context(), testScope, "a")
	if !errors.Is(err, errOlder) {
		t.Errorf("a release that does not count: %v", err)
	}
	wantOwner(t, mustClaim(t, s, claimOf("a", 3)), dedup.Exists, 1)
	if err := s.Release(t.Context(), testScope, "a"); err != nil {
		t.Fatal(err)
	}
	wantOwner(t, mustClaim(t, s, claimOf("a", 4)), dedup.Applied, 4)
	fresh := open(t, Options{Opener: logs})
	wantOwner(t, mustClaim(t, fresh, claimOf("a", 5)), dedup.Exists, 4)
}

// The index of the version before this one is read on: it lacks what later ones note.
func TestAnIndexOfTheVersionBeforeIsReadOn(t *testing.T) {
	logs, dir := earlierLog(t, 1), t.TempDir()
	s := Open(Options{Opener: logs, Path: dir, times: quick})
	wantOwner(t, mustClaim(t, s, claimOf("a", 1)), dedup.Applied, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.indexPath(testScope.ConsumerGroup, allShards), progressName)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var old map[string]any
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber()
	if err := numbers.Decode(&old); err != nil {
		t.Fatal(err)
	}
	old["version"] = leastVersion
	delete(old, "files")
	for _, shard := range old["shards"].([]any) {
		for _, later := range []string{"version", "latest", "longest"} {
			delete(shard.(map[string]any), later)
		}
	}
	if text, err = json.Marshal(old); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	logs.retire(testScope.ConsumerGroup, 0, 1) // what is in no index would be unknown
	again := open(t, Options{Opener: logs, Path: dir})
	wantOwner(t, mustClaim(t, again, claimOf("a", 2)), dedup.Exists, 1)
}
