package api

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/idempotency"
	keysmemory "github.com/kdedup/kdedup/idempotency/memory"
)

func TestCallersByHandHearWhatIsWrong(t *testing.T) {
	const judge, begin = "ClaimService/Judge", "IdempotencyService/Begin"
	const json, utf8 = "application/json", "application/json; charset=utf-8"
	for name, row := range map[string]struct {
		keys         idempotency.Store
		verb, method string
		contentType  string
		body         string
		status       int
		want         string
	}{
		"a misspelt field": {nil, "POST", judge, json, `{"scope": "orders", "messages": [{"id": "a",
			"place": {"record": {"topic": "t", "ofset": 1}}}]}`, 400, `unknown field \"ofset\"`},
		"a misspelt field in UTF-8": {nil, "POST", judge, utf8,
			`{"scop": "orders"}`, 400, `not the JSON of a JudgeRequest: `},
		"no body":         {nil, "POST", judge, json, "", 400, "the body is empty"},
		"another type":    {nil, "POST", judge, "text/plain", "{}", 415, "send Content-Type"},
		"GET":             {nil, "GET", judge, json, "", 405, "call this with POST"},
		"either spelling": {nil, "POST", judge, strings.ToUpper(utf8), judgeJSON, 200, ""},
		"snake case": {keysmemory.New(), "POST", begin, json, `{"scope": "orders", "key": "k",
			"request_hash": "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="}`, 200, "acquired"},
		"no keys": {nil, "POST", begin, json, `{}`, 501, "set api.keys"},
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := inMemory(t, Options{Keys: row.keys}, "orders")
			r, err := http.NewRequestWithContext(t.Context(), row.verb,
				server.URL()+"/kdedup.v1."+row.method, strings.NewReader(row.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", row.contentType)
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			// protojson varies its blanks, lest anybody compares its errors
			body, err := io.ReadAll(answer.Body)
			text := strings.ReplaceAll(string(body), "\u00a0", " ")
			if err != nil || answer.StatusCode != row.status || !strings.Contains(text, row.want) {
				t.Errorf("%d %s, %v, want %d and %q", answer.StatusCode, text, err, row.status,
					row.want)
			}
		})
	}
}

const judgeJSON = `{"scope": "orders", "messages": [{"id": "a", "place": {"text": "t"},
	"idBytes": ""}]}`
