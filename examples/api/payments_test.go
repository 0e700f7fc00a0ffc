package api

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

func withoutSpace(s string) string { return strings.ReplaceAll(s, " ", "") }

// payer is a client that repeats what got no answer.
type payer struct {
	t   *testing.T
	url string
}

// pay returns the status 0 without an answer.
func (p payer) pay(key, body string) (status int, answer string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url,
		strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// paid repeats until the payment was made.
func (p payer) paid(key, body string) (answer string, statuses map[int]int) {
	p.t.Helper()
	statuses = make(map[int]int)
	testkit.Eventually(p.t, 3*time.Minute, "an answer for "+key, func() bool {
		status, text := p.pay(key, body)
		statuses[status]++
		answer = text
		return status == http.StatusCreated
	})
	return answer, statuses
}

func TestAServerThatIsKilledInItsEffectAnswersOneReceipt(t *testing.T) {
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			l.ready(t)
			testKilledServer(t, l)
		})
	}
}

func testKilledServer(t *testing.T, l *language) {
	ports, err := servers.FreePorts("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	env := []string{"API=" + serve(t), "EFFECT=" + w.URL, fmt.Sprint("PORT=", ports[0]), "HOLD=2"}
	p := payer{t, fmt.Sprintf("http://127.0.0.1:%d/payments", ports[0])}
	e := l.start(t, l.payments, env...)
	first, _ := p.paid("a", `{"amount": 1}`)
	again, _ := p.paid("a", `{"amount": 1}`)
	if first != again || !strings.Contains(first, "of a") {
		t.Errorf("the receipts are %q and %q", first, again)
	}
	if status, text := p.pay("a", `{"amount": 2}`); status != http.StatusUnprocessableEntity {
		t.Errorf("another request: %d %s", status, text)
	}
	if attempts := w.of("a"); len(attempts) != 1 {
		t.Errorf("%d effects", len(attempts))
	}
	w.hang("b")
	unanswered := make(chan int, 1)
	go func() {
		status, _ := p.pay("b", `{"amount": 3}`)
		unanswered <- status
	}()
	select {
	case <-w.hung:
	case <-time.After(3 * time.Minute):
		t.Fatal("the effect did not begin")
	}
	e.kill()
	if status := <-unanswered; status != 0 {
		t.Errorf("an answer of a dead server: %d", status)
	}
	l.start(t, l.payments, env...)
	receipt, statuses := p.paid("b", `{"amount": 3}`)
	if !strings.Contains(receipt, "of b") || statuses[http.StatusConflict] == 0 {
		t.Errorf("receipt %q after %v, want 409 while the dead owner holds the key", receipt,
			statuses)
	}
	if again, _ := p.paid("b", `{"amount": 3}`); again != receipt || len(w.of("b")) != 2 {
		t.Errorf("receipt %q after %d effects", again, len(w.of("b")))
	}
}
