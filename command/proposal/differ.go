package proposal

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/internal/jsonpath"
)

const (
	mostPairs     = 300 // of a copy and its first record, that are compared field by field
	mostDiffering = 8   // fields that a proposal may leave out
)

// differing are the fields in which copies of an ID differ though they are copies: those that a
// producer writes when it sends, a time or the number of the attempt. It is empty if copies differ
// in more than that.
func (t *table) differing(ids []uint64) []string {
	first := make(map[uint64]int, len(ids))
	found := make(map[string]bool)
	pairs, real := 0, 0
	for i, id := range ids {
		at, known := first[id]
		if !known {
			first[id] = i
		}
		if id == 0 || !known || t.content[i] == t.content[at] {
			continue
		}
		if pairs++; pairs > mostPairs || 5*real > mostPairs {
			break
		}
		paths, sent := differences(t.views[at], t.views[i], t.schemas.readsValues())
		if !sent {
			real++
			continue
		}
		for _, path := range paths {
			found[path] = true
		}
	}
	if 5*real > pairs || len(found) > mostDiffering {
		return nil
	}
	return slices.Sorted(maps.Keys(found))
}

// differences are the fields in which two records differ; sent says that all of them are such as a
// producer writes when it sends, or, with schemas, such as a version of the schema may lack.
func differences(a, b *kgo.Record, schemas bool) (paths []string, sent bool) {
	one, ok := jsonpath.Texts(a.Value)
	other, alsoOK := jsonpath.Texts(b.Value)
	if !ok || !alsoOK || !bytes.Equal(a.Key, b.Key) {
		return nil, false
	}
	for path := range one {
		if _, has := other[path]; !has {
			other[path] = ""
		}
	}
	for path, text := range other {
		if one[path] == text {
			continue
		}
		if schemas && (one[path] == "" || text == "") && len(paths) < mostDiffering {
			paths = append(paths, path)
			continue
		}
		if paths = append(paths, path); len(paths) > mostDiffering {
			return nil, false
		}
		if !writtenAtSending(path, one[path], a.Timestamp) ||
			!writtenAtSending(path, text, b.Timestamp) {
			return nil, false
		}
	}
	return paths, true
}

func writtenAtSending(path, text string, at time.Time) bool {
	name := nameOf(Place{From: "json", Path: path})
	return name.isAttempt() || text == "" && name.isTime() ||
		isTime(strings.Trim(text, `"`), at, name.isTime())
}

// rekeyed reports whether copies of an ID have keys that say the same in other bytes.
func (t *table) rekeyed(ids []uint64) bool {
	first := make(map[uint64]int, len(ids))
	for i, id := range ids {
		at, known := first[id]
		if !known {
			first[id] = i
		}
		if id != 0 && known && bytes.Equal(t.views[at].Key, t.views[i].Key) &&
			!bytes.Equal(t.records[at].Key, t.records[i].Key) {
			return true
		}
	}
	return false
}

// noField is none that a document has.
const noField = "\x00"

// without is what of each record counts if those fields do not.
func (t *table) without(paths []string) ([]dedup.Fingerprint, error) {
	rules := messageid.Rules{Fingerprint: messageid.Content{Ignore: paths}}
	if len(paths) == 0 { // all of what the documents say, however they are written
		rules.Fingerprint.Ignore = []string{noField}
	}
	extractor, err := messageid.New(messageid.Source{From: "key"})
	if err == nil {
		extractor, err = extractor.With(rules)
	}
	if err != nil {
		return nil, err
	}
	fingerprints := extractor.Fingerprinter()
	content := make([]dedup.Fingerprint, len(t.records))
	for i, r := range t.views {
		content[i] = fingerprints.Of(r)
	}
	return content, nil
}
