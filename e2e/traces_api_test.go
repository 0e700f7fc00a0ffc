package e2e_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/kdedup/kdedup/internal/testkit"
)

// apiURL is where the API of an instance answers.
func (i *instance) apiURL() (url string) {
	i.t.Helper()
	testkit.Eventually(i.t, time.Minute, "the api of "+i.name, func() bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		_, rest, found := strings.Cut(i.log.String(), `msg="the api answers" url=`)
		url, _, _ = strings.Cut(rest, "\n")
		return found || i.over()
	})
	return url
}

// told is what a span tells, in one line.
func told(s *trace.Span) string {
	line := s.Name + " " + s.Status.GetCode().String()
	for _, a := range s.Attributes {
		if a.Key != "rpc.method" {
			line += fmt.Sprintf(" %s=%v%v", a.Key, a.Value.GetStringValue(), a.Value.GetIntValue())
		}
	}
	return line
}

// ofTrace is what the spans of a trace tell, by their parents' IDs.
func (c *collector) ofTrace(traceID string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]string)
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) == traceID {
			all[hex.EncodeToString(s.ParentSpanId)] = told(s)
		}
	}
	return all
}

func TestCallsOfTheAPIGoOnInTheTracesOfTheirCallers(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"run", "serve"} {
		t.Run(command, func(t *testing.T) {
			c := newCollector(t)
			d := deployAt(t, inProcess(t), exactlyOnce)
			d.addSettings(fmt.Sprintf(strings.Replace(tracing, "ratio: 1", "ratio: 0", 1), c.url))
			d.addSettings(fmt.Sprintf("api: {listen: 127.0.0.1:0, max_batch: 2, scopes: "+
				"[{name: mails}], keys: {path: %q}, callers: [{name: shop, token: "+
				"the-token-of-the-shop, scopes: [mails]}]}", t.TempDir()))
			i := d.launchAs(command, kdedup, "one")
			traceCalls(t, c, i)
		})
	}
}

func traceCalls(t *testing.T, c *collector, i *instance) {
	const traceID, other = "0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c"
	url := i.apiURL()
	span, want := 0, make(map[string]string)
	call := func(token, trace, flags, method, body, tells string) {
		t.Helper()
		span++
		parent := fmt.Sprintf("%016x", span)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			url+"/kdedup.v1."+method, bytes.NewBufferString(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Traceparent", "00-"+trace+"-"+parent+"-"+flags)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if tells != "" {
			want[parent] = "kdedup.v1." + method + " " + tells
		}
	}
	defer http.DefaultClient.CloseIdleConnections()
	const shop = "the-token-of-the-shop"
	message := func(id, place string) string {
		return fmt.Sprintf(`{"id": %q, "place": {"text": %q}}`, id, place)
	}
	judge := func(trace, flags, scope, tells string, messages ...string) {
		t.Helper()
		call(shop, trace, flags, "ClaimService/Judge", fmt.Sprintf(
			`{"scope": %q, "messages": [%s]}`, scope, strings.Join(messages, ",")), tells)
	}
	const ok = "STATUS_CODE_UNSET rpc.system.name=connectrpc0 rpc.response.status_code=ok0 " +
		"kdedup.api.caller=shop0 kdedup.api.scope=mails0 kdedup.store=%s0 "
	claims, keys := fmt.Sprintf(ok, "embedded"), fmt.Sprintf(ok, "files")
	judge(traceID, "01", "mails", claims+"kdedup.api.ids=2 kdedup.api.verdicts.first=1 "+
		"kdedup.api.verdicts.duplicate=1", message("a", "1"), message("a", "2"))
	judge(traceID, "01", "mails", claims+"kdedup.api.ids=1 kdedup.api.verdicts.mine=1",
		message("a", "1"))
	judge(other, "00", "mails", "", message("a", "1")) // its caller does not sample
	judge(traceID, "01", "other", "STATUS_CODE_UNSET rpc.system.name=connectrpc0 "+
		"rpc.response.status_code=permission_denied0 kdedup.api.caller=shop0 "+
		"error.type=permission_denied0", message("a", "1"))
	judge(traceID, "01", "mails", strings.Replace(claims, "code=ok", "code=invalid_argument", 1)+
		"kdedup.api.ids=3 error.type=invalid_argument0",
		message("a", "1"), message("b", "1"), message("c", "1"))
	call(shop, traceID, "01", "ClaimService/Judge", "{", "STATUS_CODE_UNSET "+
		"rpc.system.name=connectrpc0 kdedup.api.caller=shop0 error.type=unread0")
	call("a stranger's", traceID, "01", "ClaimService/Judge", "{}", "")
	call(shop, traceID, "01", "IdempotencyService/Begin", `{"scope": "mails", "key": "k",
		"requestHash": "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="}`,
		strings.Replace(keys, "kdedup.store=files0 ",
			"kdedup.store=files0 kdedup.api.outcome=acquired0 ", 1)+"kdedup.api.ids=1")
	i.stop() // it exports the last spans
	if diff := cmp.Diff(want, c.ofTrace(traceID)); diff != "" {
		t.Errorf("the spans by their parents (-want +got):\n%s", diff)
	}
	if got := c.ofTrace(other); len(got) > 0 {
		t.Errorf("spans of a trace that is not sampled: %v", got)
	}
}
