package claimlog

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// A backup that copies files of a running process in the order of their names (claims/ before
// progress.json) restores an index that lacks claims.
func TestAnIndexThatIsOlderThanItsProgressIsMadeAgain(t *testing.T) {
	logs, _ := aheadLogs(1)
	path := t.TempDir()
	o := Options{Opener: logs, Wait: 5 * time.Second, Path: path}
	run := func(c ...dedup.Claim) {
		o.times = quick
		s := Open(o)
		for _, one := range c {
			mustClaim(t, s, one)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	run(claimOf("a", 1))
	claims := filepath.Join(path, hex.EncodeToString([]byte(testScope.ConsumerGroup)), claimsName)
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(claims)); err != nil { // the backup begins
		t.Fatal(err)
	}
	run(claimOf("b", 2), claimOf("c", 3)) // and comes to progress.json when this is saved
	if err := os.RemoveAll(claims); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(claims, os.DirFS(copied)); err != nil {
		t.Fatal(err)
	}
	healthy := open(t, Options{Opener: logs, Wait: 5 * time.Second}) // has read all of the log
	wantOwner(t, mustClaim(t, healthy, claimOf("c", 4)), dedup.Exists, 3)
	s := open(t, o)
	wantOwner(t, mustClaim(t, s, claimOf("a", 5)), dedup.Exists, 1)
	if got := mustClaim(t, s, claimOf("b", 6)); got.Owner.Offset != 2 {
		t.Errorf("the copy of b is a first one: %+v", got)
	}
	if got := mustClaim(t, healthy, claimOf("b", 2)); got.Owner.Offset != 2 {
		t.Errorf("and the process that has read all of the log believes it: %+v", got)
	}
}
