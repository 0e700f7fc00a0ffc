package claimlog

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kdedup/kdedup/dedup"
)

var testHead = head{log: 0xfeed, id: blockID{process: 7, number: 1 << 40}, scope: "orders"}

// claimsInABatch are of two partitions and two topics, in the order of a poll, with IDs of several
// shapes.
func claimsInABatch() []dedup.Claim {
	ids := []string{
		"0f8fad5b-d9cb-469f-a165-70867728950e", "0F8FAD5B-D9CB-469F-A165-70867728950E",
		"0f8fad5bd9cb469fa16570867728950e",
		"0f8fad5b-d9cb-469f-a165-70867728950g", "0f8fad5b-d9cb-469f-a165+70867728950e", "", "a",
		"\x00", strings.Repeat("x", 5000),
	}
	var claims []dedup.Claim
	for i := range 100 {
		c := dedup.Claim{ID: dedup.ID(ids[i%len(ids)] + fmt.Sprint(i)),
			Fingerprint: dedup.Fingerprint{byte(i), 15: 0xff}}
		if i < len(ids) {
			c.ID = dedup.ID(ids[i])
		}
		c.Owner = dedup.Coordinates{TopicID: [16]byte{byte(i / 50)}, Partition: int32(i / 25),
			Offset: int64(i * 7), LeaderEpoch: int32(i/30) - 1}
		claims = append(claims, c)
	}
	claims[98].Owner = dedup.Coordinates{Partition: math.MaxInt32, Offset: math.MaxInt64,
		LeaderEpoch: math.MaxInt32}
	claims[99].Owner = dedup.Coordinates{Partition: math.MinInt32, Offset: math.MinInt64,
		LeaderEpoch: -1}
	return claims
}

func places(n int) (at []int32) {
	for i := range n {
		at = append(at, int32(i))
	}
	return at
}

func TestClaimsComeBackAsTheyWere(t *testing.T) {
	claims := claimsInABatch()
	data := claimsBlock(nil, testHead, 90*time.Second, sight{Position{1 << 41, 3}, 5, 0}, claims,
		places(len(claims)))
	var b block
	for range 2 { // its memory is used again
		if err := b.parse(data); err != nil {
			t.Fatal(err)
		}
		if b.kind != kindClaims || b.log != testHead.log || b.head.id != testHead.id ||
			b.scope != "orders" || b.ttl != 90*time.Second ||
			b.seen != (sight{Position{1 << 41, 3}, 5, 0}) {
			t.Errorf("head %+v, ttl %v", b.head, b.ttl)
		}
		if diff := cmp.Diff(claims, claimsIn(&b)); diff != "" {
			t.Error(diff)
		}
	}
}

func claimsIn(b *block) (claims []dedup.Claim) {
	for _, c := range b.claims {
		claims = append(claims, dedup.Claim{ID: dedup.ID(c.id), Owner: c.owner,
			Fingerprint: c.fingerprint})
	}
	return claims
}

// livesOf are of any age and end.
func livesOf(n int) (lives []life) {
	for i := range n {
		lives = append(lives, life{int64(i*i)*1000 - 5, int64(n-i) << 30})
	}
	lives[0], lives[n-1] = life{math.MinInt64, math.MaxInt64}, life{math.MaxInt64, math.MinInt64}
	return lives
}

func TestImportedClaimsComeBackAsTheyWere(t *testing.T) {
	claims := claimsInABatch()
	lives := livesOf(len(claims))
	var b block
	for _, v := range []byte{firstVersion, version, version} { // its memory is used again
		testHead, seen := testHead, sight{Position{1 << 41, 3}, 5, 0}
		if testHead.version = v; v == version {
			testHead.written, seen.Ends = -77, 1<<50
		}
		data := importBlock(nil, testHead, seen, claims, lives, places(len(claims)))
		if err := b.parse(data); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(claims, claimsIn(&b)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(lives, b.lives, cmp.AllowUnexported(life{})); diff != "" {
			t.Error(diff)
		}
		if b.kind != kindImport || b.head.id != testHead.id ||
			b.written != testHead.written || b.seen != seen || b.after != 0 {
			t.Errorf("head %+v, seen %+v", b.head, b.seen)
		}
		if err := b.parse(claimsBlock(nil, testHead, time.Second, sight{}, claims,
			places(5))); err != nil || len(b.lives) > 0 {
			t.Errorf("behind it: %d lives, %v", len(b.lives), err)
		}
	}
}

func TestABlockHasTheChosenClaims(t *testing.T) {
	claims := claimsInABatch()
	var b block
	if err := b.parse(
		claimsBlock([]byte("memory"), testHead, time.Second, sight{}, claims, []int32{3, 50, 98}),
	); err != nil {
		t.Fatal(err)
	}
	for i, at := range []int{3, 50, 98} {
		if string(b.claims[i].id) != string(claims[at].ID) ||
			b.claims[i].owner != claims[at].Owner {
			t.Errorf("claim %d is %+v, want %+v", i, b.claims[i], claims[at])
		}
	}
}

func TestTheLatestTimeToComeAfterCounts(t *testing.T) {
	claims := claimsInABatch()
	claims[2].After, claims[3].After, claims[4].After = time.UnixMilli(5), time.UnixMilli(7),
		time.UnixMilli(6)
	for want, at := range map[int64][]int32{0: {0, 1}, 7: {0, 3, 4}, 6: {4, 5}} {
		var b block
		if err := b.parse(
			claimsBlock(nil, testHead, time.Second, sight{}, claims, at),
		); err != nil || b.after != want {
			t.Errorf("claims %v come after %d, want %d: %v", at, b.after, want, err)
		}
	}
}

func TestReleasesAndForgets(t *testing.T) {
	var b block
	if err := b.parse(releaseBlock(testHead, "an id")); err != nil || b.kind != kindRelease ||
		string(b.id) != "an id" {
		t.Errorf("%+v, %v", b, err)
	}
	if err := b.parse(forgetBlock(testHead)); err != nil || b.kind != kindForget ||
		b.scope != "orders" {
		t.Errorf("%+v, %v", b, err)
	}
}

// A claim of a UUID in the order of a batch is what the log mostly holds.
func TestAClaimIsSmall(t *testing.T) {
	var claims []dedup.Claim
	for i := range 1000 {
		id := fmt.Sprintf("0f8fad5b-d9cb-469f-a165-%012x", i)
		claims = append(claims, dedup.Claim{ID: dedup.ID(id),
			Owner: dedup.Coordinates{Offset: int64(i) * 8}})
	}
	if size := len(
		claimsBlock(nil, testHead, time.Hour, sight{}, claims, places(1000)),
	); size > 35*1000 {
		t.Errorf("1,000 claims take %d bytes", size)
	}
}

func TestNoDamageIsTakenForABlock(t *testing.T) {
	claims := claimsInABatch()
	whole := claimsBlock(nil, testHead, time.Second, sight{}, claims[:20], places(20))
	var b block
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x10
		if err := b.parse(damaged); !errors.Is(err, errForeign) {
			t.Fatalf("with byte %d changed: %v", i, err)
		}
		if err := b.parse(whole[:i]); !errors.Is(err, errForeign) {
			t.Fatalf("cut after %d bytes: %v", i, err)
		}
	}
}

// What is new must not be passed over: another process applies it.
func TestBlocksOfNewerVersionsAreRefused(t *testing.T) {
	for at, value := range map[int]byte{2: version + 1, 3: byte(kindRenewal) + 1} {
		data := forgetBlock(testHead)
		data = data[:len(data)-sumBytes]
		data[at] = value
		var b block
		if err := b.parse(seal(data)); !errors.Is(err, errNewer) {
			t.Errorf("byte %d = %d: %v", at, value, err)
		}
	}
}

// FuzzParse tries bytes with a right checksum: nothing may panic, and what is taken for claims is
// written alike again.
func FuzzParse(f *testing.F) {
	for _, data := range [][]byte{
		claimsBlock(nil, testHead, time.Hour, sight{}, claimsInABatch(), places(100)),
		releaseBlock(testHead, "id"), forgetBlock(testHead),
		importBlock(nil, testHead, sight{}, claimsInABatch(), livesOf(100), places(100)),
		renewalBlock(testHead, time.Hour, sight{}, claimsInABatch(), livesOf(100), places(100)),
	} {
		f.Add(data[:len(data)-sumBytes])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second block
		if err := first.parse(seal(bytes.Clone(data))); err != nil {
			if !errors.Is(err, errForeign) && !errors.Is(err, errNewer) {
				t.Fatal(err)
			}
			return
		}
		if first.kind == kindRelease || first.kind == kindForget {
			return
		}
		var claims []dedup.Claim
		for _, c := range first.claims {
			claims = append(claims, dedup.Claim{ID: dedup.ID(c.id), Owner: c.owner,
				Fingerprint: c.fingerprint})
		}
		switch at := places(len(claims)); first.kind {
		case kindClaims:
			data = claimsBlock(nil, first.head, first.ttl, first.seen, claims, at)
		case kindImport:
			data = importBlock(nil, first.head, first.seen, claims, first.lives, at)
		case kindRenewal:
			data = renewalBlock(first.head, first.ttl, first.seen, claims, first.lives, at)
		}
		if err := second.parse(data); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first.lives, second.lives, cmp.AllowUnexported(life{}),
			cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(first.claims, second.claims, cmp.AllowUnexported(claim{})); diff != "" {
			t.Error(diff)
		}
	})
}
