package jsonpath

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPathsAreTakenApart(t *testing.T) {
	name := func(name string) Step { return Step{name, -1} }
	index := func(name string, n int) Step { return Step{name, n} }
	for text, want := range map[string][]Path{
		"id":              {{name("id")}},
		"order.id":        {{name("order"), name("id")}},
		"items.0.id":      {{name("items"), index("0", 0), name("id")}},
		"items[0].id":     {{name("items"), index("0", 0), name("id")}},
		"items[0][12]":    {{name("items"), index("0", 0), index("12", 12)}},
		"[1].id":          {{index("1", 1), name("id")}},
		"[1]":             {{index("1", 1)}},
		`a\.b.c\\d`:       {{name("a.b"), name(`c\d`)}},
		`items\[0\].id`:   {{name("items[0]"), name("id")}},
		"a]":              {{name("a]")}},
		"01":              {{name("01")}},
		"payload|json.id": {{name("payload")}, {name("id")}},
		"a[0]|json[1].id": {{name("a"), index("0", 0)}, {index("1", 1), name("id")}},
		"a|json.b|json.c": {{name("a")}, {name("b")}, {name("c")}},
		`a\|json.b`:       {{name("a|json"), name("b")}},
		"a|jsonb":         {{name("a|jsonb")}},
		"a|b":             {{name("a|b")}},
		`\$.id`:           {{name("$"), name("id")}},
		"_id.$oid":        {{name("_id"), name("$oid")}},
		"$oid":            {{name("$oid")}},
	} {
		got, err := Parse(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestWrongPathsNameTheRightSpelling(t *testing.T) {
	const brackets = "has a bracket without an index; write items[0] or items.0 for an element, " +
		`and \[ for a bracket in a name`
	for text, want := range map[string]string{
		"":      "has an empty segment",
		"a..b":  "has an empty segment",
		".a":    "has an empty segment",
		"a.":    "has an empty segment",
		"a.[0]": "has an empty segment",
		"[0].":  "has an empty segment",
		`a\b`:   `has a lone backslash; write \\ for a backslash and \. for a dot in a name`,
		`a\`:    `has a lone backslash; write \\ for a backslash and \. for a dot in a name`,
		"$.items[0].id": `begins with $, which stands for nothing here; write items[0].id, ` +
			`or \$ for a member of this name`,
		"$[0].id": `begins with $, which stands for nothing here; write [0].id, ` +
			`or \$ for a member of this name`,
		"$": `begins with $, which stands for nothing here; write the name of a field, ` +
			`or \$ for a member of this name`,
		"items[*].id":  brackets,
		"items[-1].id": brackets,
		"items['a']":   brackets,
		"items[0":      brackets,
		"items[]":      brackets,
		"items[01]":    brackets,
		"items[0]id":   "has a name right behind a bracket; write a dot between the two",
		"payload|json": "has nothing behind |json; name the field: payload|json.id",
		"|json.id":     "has an empty segment",
		"a|json..b":    "has an empty segment",
		"a|json.b|json.c|json.d|json.e": "has too many documents in each other; " +
			"|json may stand three times",
	} {
		_, err := Parse(text)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
			t.Errorf("%s: the error is a %T", text, err)
		}
	}
}

// What a scope has noted for a path must be what it was before there were brackets and documents.
func TestPathsOfEarlierVersionsAreWrittenAsTheyWere(t *testing.T) {
	for _, text := range []string{"id", "order.id", "items.0.id", `a\.b.c\\d`, "a|b", "$oid", "a]",
		"é.ü", " ", `"`} {
		paths, err := Parse(text)
		if err != nil || len(paths) != 1 || paths[0].String() != text {
			t.Errorf("%s became %v, %v", text, paths, err)
		}
	}
}

// FuzzParse: a path that was read and written is the same path.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"a.b", "items[0].id", "a|json.b", `a\.b\\\|\[\$`, "$.a",
		"[0][1]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		paths, err := Parse(text)
		if err != nil {
			if paths != nil {
				t.Fatal("a path and an error")
			}
			return
		}
		for _, path := range paths {
			if len(path) == 0 {
				t.Fatalf("%q has an empty path", text)
			}
			written := strings.NewReplacer("|", `\|`, "[", `\[`, "$", `\$`).Replace(path.String())
			again, err := Parse(written)
			if err != nil || len(again) != 1 || cmp.Diff(path, again[0]) != "" {
				t.Fatalf("%q became %q, then %v, %v", text, path, again, err)
			}
		}
	})
}
