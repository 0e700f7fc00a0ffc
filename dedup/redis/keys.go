package redis

import (
	"strconv"
	"strings"

	"github.com/kdedup/kdedup/dedup"
)

// Keys read PREFIX:KIND:{}:LENGTH:GROUP:LENGTH:NAME, and a claim's goes on with a colon and the ID.
// The lengths keep names apart that hold colons. The empty braces make a cluster hash the whole
// key: without them braces in an ID would put all IDs that share what is between them into one
// slot.
const (
	claimKind = ":c"
	scopeKind = ":s"
	tag       = ":{}:"
)

func scopeKey(prefix, kind string, scope dedup.Scope) string {
	return prefix + kind + tag + counted(scope.ConsumerGroup) + ":" + counted(scope.Name)
}

func counted(name string) string { return strconv.Itoa(len(name)) + ":" + name }

// claimPrefix is what the keys of all claims of a scope begin with, and no other key does.
func claimPrefix(prefix string, scope dedup.Scope) string {
	return scopeKey(prefix, claimKind, scope) + ":"
}

// markKey is written to by a pipeline that waits for replicas, see batch.
func markKey(prefix string) string { return prefix + ":w" }

var globs = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// startingWith is the pattern of SCAN for keys that begin so.
func startingWith(prefix string) string { return globs.Replace(prefix) + "*" }
