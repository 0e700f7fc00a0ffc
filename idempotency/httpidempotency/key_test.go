package httpidempotency

import (
	"strings"
	"testing"
)

func TestAKeyIsAStructuredFieldString(t *testing.T) {
	long := strings.Repeat("k", MaxKey)
	for _, row := range []struct {
		name     string
		values   []string
		unquoted bool
		want     string
		wantErr  string
	}{
		{"a string", []string{`"8e03978e-40d5"`}, false, "8e03978e-40d5", ""},
		{"spaces around it", []string{`  "k"  `}, false, "k", ""},
		{"escapes", []string{`"a\"b\\c"`}, false, `a"b\c`, ""},
		{"parameters are ignored", []string{`"k";v=1;w`}, false, "k", ""},
		{"the longest", []string{`"` + long + `"`}, false, long, ""},
		{"too long", []string{`"` + long + `k"`}, false, "", "at most 255"},
		{"missing", nil, false, "", "is missing"},
		{"empty header", []string{""}, false, "", "double quotes"},
		{"empty string", []string{`""`}, false, "", "not be empty"},
		{"twice", []string{`"a"`, `"b"`}, false, "", "must occur once, got 2"},
		{"a list", []string{`"a", "b"`}, false, "", "double quotes"},
		{"no end", []string{`"a`}, false, "", "double quotes"},
		{"an escape of something else", []string{`"a\n"`}, false, "", "double quotes"},
		{"not ASCII", []string{`"ä"`}, false, "", "double quotes"},
		{"a control character", []string{"\"a\x00\""}, false, "", "double quotes"},
		{"a token", []string{`abc`}, false, "", "double quotes"},
		{"a number", []string{`123`}, false, "", "double quotes"},
		{"bytes", []string{`:YWJj:`}, false, "", "double quotes"},
		{"a bare UUID", []string{`8e03978e-40d5`}, false, "", "double quotes"},
		{"a bare UUID where that is allowed", []string{`8e03978e-40d5`}, true, "8e03978e-40d5", ""},
		{"a string where bare ones are allowed", []string{`"k"`}, true, "k", ""},
		{"half a string where bare ones are allowed", []string{`"k`}, true, "", "double quotes"},
		{"a list where bare ones are allowed", []string{`a,b`}, true, "", "double quotes"},
		{"words where bare ones are allowed", []string{`a b`}, true, "", "double quotes"},
		{"nothing where bare ones are allowed", []string{``}, true, "", "not be empty"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := parseKey(row.values, row.unquoted)
			if got != row.want || (err == nil) != (row.wantErr == "") || err != nil &&
				!strings.Contains(err.Error(), row.wantErr) {
				t.Errorf("got %q, %v; want %q, %q", got, err, row.want, row.wantErr)
			}
		})
	}
}

// What is accepted can be written back as the one string that it was.
func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{`"k"`, `"a\"b\\c";v=1`, `k`, ``, `"`, `"a" "b"`, `:YQ==:`, `?1`,
		`@1`, `%"a"`} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, value string, unquoted bool) {
		key, err := parseKey([]string{value}, unquoted)
		if err != nil {
			return
		}
		if key == "" || len(key) > MaxKey || strings.ContainsFunc(key, func(r rune) bool {
			return r < ' ' || r > '~'
		}) {
			t.Fatalf("%q gave the key %q", value, key)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := parseKey([]string{quoted}, false); err != nil || again != key {
			t.Errorf("%q gave %q, written as %q it gives %q, %v", value, key, quoted, again, err)
		}
		if !unquoted && !strings.HasPrefix(strings.TrimLeft(value, " "), quoted) {
			// An unnecessary escape does not exist in structured fields, so the text must match.
			t.Errorf("%q gave %q", value, key)
		}
	})
}

func FuzzDecodeResponse(f *testing.F) {
	for _, r := range []response{{Status: 201, Kept: true, Body: []byte("{}")}, {Status: 204}} {
		data, err := r.encode(1000)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeResponse(data)
		if err == nil && (r.Status < 200 || r.Status > 999 || len(r.Body) > len(data)) {
			t.Errorf("%x gave %+v", data, r)
		}
	})
}
