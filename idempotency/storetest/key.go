package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/idempotency"
)

var keyBehaviours = []behaviour{
	{"keys are any bytes and do not mix", anyKeys},
}

func anyKeys(t *testing.T, s *subject) {
	prefix := newKey().ID
	long := strings.Repeat("n", idempotency.MaxNamespace-len(prefix))
	keys := []idempotency.Key{
		{Namespace: prefix, ID: "a"},
		{Namespace: prefix, ID: "A"},
		{Namespace: prefix, ID: "a "},
		{Namespace: prefix + "a", ID: "b"},
		{Namespace: prefix, ID: "ab"},
		{Namespace: prefix + ":a", ID: "b"},
		{Namespace: prefix, ID: "a:b"},
		{Namespace: prefix, ID: ":a:b"},
		{Namespace: "", ID: prefix},
		{Namespace: prefix, ID: "\x00"},
		{Namespace: prefix + "\x00", ID: "\x00"},
		{Namespace: prefix, ID: "\xff\xfe"},
		{Namespace: prefix, ID: "\xff"},
		{Namespace: prefix, ID: "'; DROP TABLE idempotency_keys; --"},
		{Namespace: prefix, ID: "日本語 {x} *?[a]"},
		{Namespace: prefix + long, ID: strings.Repeat("i", idempotency.MaxID)},
		{Namespace: prefix + long, ID: strings.Repeat("i", idempotency.MaxID-1)},
	}
	records := make([]idempotency.Record, len(keys))
	for i, key := range keys {
		records[i] = started()
		s.mustSwap(t, key, none, records[i], time.Hour)
	}
	for i, key := range keys {
		s.mustRefuse(t, key, none, started(), records[i])
	}
}
