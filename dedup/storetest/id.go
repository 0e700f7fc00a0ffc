package storetest

import (
	"strings"
	"testing"

	"github.com/kdedup/kdedup/dedup"
)

var idBehaviours = []behaviour{
	{"ids are bytes", idsAreBytes},
	{"ids that resemble each other are different", similarIDs},
}

// strangeIDs are pairwise different. Empty IDs are never claimed.
var strangeIDs = []struct {
	name string
	id   string
}{
	{"one byte", "a"},
	{"one zero byte", "\x00"},
	{"two zero bytes", "\x00\x00"},
	{"one 0xff byte", "\xff"},
	{"invalid utf-8", "a\xff\xfeb"},
	{"a zero byte inside", "a\x00b"},
	{"a zero byte behind", "a\x00"},
	{"a prefix of others", "ab"},
	{"that prefix continued", "abc"},
	{"other case", "ABC"},
	{"a space behind", "abc "},
	{"separators", "a/b:c|d,e;f\tg\nh"},
	{"braces", "{ab}c"},
	{"quotes", `'";--\`},
	{"wildcards", "a*?%_"},
	{"composed é", "\u00e9"},
	{"decomposed é", "e\u0301"},
	{"digits", "42"},
	{"digits with a zero", "042"},
	{"4 KiB", strings.Repeat("x", 4096)},
	{"4 KiB with another end", strings.Repeat("x", 4095) + "y"},
	{"4 KiB of zero bytes", strings.Repeat("\x00", 4096)},
}

func idsAreBytes(t *testing.T, s *subject) {
	for n, row := range strangeIDs {
		t.Run(row.name, func(t *testing.T) {
			scope, c := newScope(), claimOf(row.id, n)
			s.wantApplied(t, s.claim(t, scope, c)[0], c)
			wantExists(t, s.claim(t, scope, claimOf(row.id, n+100))[0], c)
			wantExists(t, s.lookup(t, scope, c.ID), c)
			s.release(t, scope, c.ID)
			s.wantFree(t, scope, c.ID)
		})
	}
}

// similarIDs puts all of them into one scope and one batch.
func similarIDs(t *testing.T, s *subject) {
	scope := newScope()
	claims := make([]dedup.Claim, len(strangeIDs))
	for n, row := range strangeIDs {
		claims[n] = claimOf(row.id, n)
	}
	for i, a := range s.claim(t, scope, claims...) {
		s.wantApplied(t, a, claims[i])
	}
	for i, a := range s.claim(t, scope, claims...) {
		wantExists(t, a, claims[i])
	}
}
