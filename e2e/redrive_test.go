package e2e_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// redriveCase is a pipeline that has made dead letters of its records, whose cause is fixed, and a
// redrive of them that is killed again and again.
type redriveCase struct {
	cause, into string
	kills       []crash
}

// The last kill of each is one whose outcome only the brokers know.
var redriveKills = [][]crash{
	{{"letters-claimed", 2}, {"produce-sent", 4}, {"end-txn-sent", 2}},
	{{"init-producer-id-sent", 1}, {"letters-forwarded", 2}, {"end-txn-unsent", 2}},
	{{"record-produced", 70}, {"redrive-ended", 2}, {"end-txn-answered", 1}},
}

func TestARedriveKilledThreeTimesLeavesNothingTwice(t *testing.T) {
	t.Parallel()
	var cases []redriveCase
	for _, cause := range []string{"too large", "no ID"} {
		for _, into := range []string{"clean", "input"} {
			for _, kills := range redriveKills {
				cases = append(cases, redriveCase{cause, into, kills})
			}
		}
	}
	for i, c := range testkit.Share(t, cases, cases[:len(redriveKills)]) {
		at := onPostgres(t)
		if i%2 == 1 {
			at = onClaimLog(t, "memory")
		}
		t.Run(fmt.Sprint(c.cause, " into ", c.into, c.kills), func(t *testing.T) { c.run(t, at) })
	}
}

const redriven = 300

func (c redriveCase) run(t *testing.T, at place) {
	settings := []string{"lanes: 1", "batch_records: 40", "session_timeout: 6s"}
	if c.cause == "no ID" {
		settings = append(settings, "message_id: {from: header, name: other-id}")
	}
	d := deployAt(t, at, exactlyOnce, settings...)
	if c.cause == "too large" {
		d.alter(d.output(), map[string]string{"max.message.bytes": "1000"})
	}
	for i := range redriven {
		d.produceLetter(i)
	}
	d.readAll()
	if got := len(flat(d.records(d.input + ".dlq"))); got < redriven/2 {
		t.Fatalf("%d dead letters", got)
	}
	if c.cause == "too large" {
		d.alter(d.output(), map[string]string{"max.message.bytes": "1000000"})
	} else {
		d.replace("{from: header, name: other-id}", "{from: key}")
		d.replace("    lanes:", "    scope: by-key\n    lanes:")
	}
	for _, kill := range c.kills {
		d.redriveUntil(kill, c.into)
	}
	said := d.command("redrive", "--into", c.into, "--yes")
	if !strings.Contains(said, "redriven") || strings.Contains(said, "refused") {
		t.Errorf("the last redrive:\n%s", said)
	}
	d.produceCopies(redriven / 3)
	d.readAll()
	d.mustHaveEachOnce()
}

// produceLetter adds a message whose value no compression makes small. Every tenth one has an ID
// in any case: an input without any is taken for a mistake.
func (d *deployment) produceLetter(i int) {
	d.t.Helper()
	id := fmt.Sprint("id-", i)
	value := []byte(id + " ")
	for len(value) < 2000 {
		value = append(value, rand.Text()...)
	}
	r := &kgo.Record{Topic: d.input, Partition: int32(i % partitions), Key: []byte(id),
		Value: value, Headers: []kgo.RecordHeader{{Key: "message-id", Value: []byte(id)}}}
	if i%10 == 9 {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "other-id", Value: []byte(id)})
	}
	d.mustProduce(r)
}

func (d *deployment) mustProduce(r *kgo.Record) {
	d.t.Helper()
	if err := d.client.ProduceSync(d.t.Context(), r).FirstErr(); err != nil {
		d.t.Fatal(err)
	}
}

// produceCopies sends the records of some dead letters again, each to another partition.
func (d *deployment) produceCopies(n int) {
	d.t.Helper()
	for _, letter := range flat(d.records(d.input + ".dlq"))[:n] {
		d.mustProduce(&kgo.Record{Topic: d.input, Partition: (letter.Partition + 1) % partitions,
			Key: letter.Key, Value: letter.Value, Headers: letter.Headers[:1]})
	}
}

func flat(records map[int32][]*kgo.Record) (all []*kgo.Record) {
	for _, some := range records {
		all = append(all, some...)
	}
	return all
}

// readAll has the pipeline read what is on the input.
func (d *deployment) readAll() {
	d.t.Helper()
	i := d.start("one")
	d.waitFor(1)
	i.stop()
	d.waitStable(d.output())
	d.waitStable(d.input + ".dlq")
}

func (d *deployment) replace(from, to string) {
	d.t.Helper()
	text, err := os.ReadFile(d.config)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(d.config,
		bytes.Replace(text, []byte(from), []byte(to), 1), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// redriveUntil runs a redrive that is killed at the point.
func (d *deployment) redriveUntil(at crash, into string) {
	d.t.Helper()
	binary, err := crashing()
	if err != nil {
		d.t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(d.t.Context(), binary, "redrive", "-c", d.config, "--into", into,
		"--yes")
	cmd.Env = append(testkit.Environment(), "KDEDUP_CRASH_AT="+at.String())
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || status.Signal() != syscall.SIGKILL ||
		!strings.Contains(out.String(), "killed at "+at.point) {
		d.t.Fatalf("the redrive was not killed at %v: %v\n%s", at, cmd.ProcessState, out.String())
	}
}

func (d *deployment) mustHaveEachOnce() {
	d.t.Helper()
	want := make(map[string]string) // value by ID
	for _, r := range flat(d.records(d.input)) {
		if id := string(r.Key); want[id] == "" {
			want[id] = string(r.Value)
		}
	}
	seen := make(map[string]int)
	for _, r := range flat(d.records(d.output())) {
		id := string(r.Key)
		if seen[id]++; string(r.Value) != want[id] {
			d.t.Errorf("%s has another value", id)
		}
	}
	if len(want) != redriven {
		d.t.Errorf("%d IDs on the input", len(want))
	}
	for id := range want {
		if seen[id] != 1 {
			d.t.Errorf("%s is %d times on the clean topic", id, seen[id])
		}
	}
}
