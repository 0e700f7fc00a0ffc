package command

import (
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// Two processes with one instance take the transactional IDs from each other. The second says so
// before it does.
func TestASecondProcessWithTheSameInstanceIsToldAtItsStart(t *testing.T) {
	const told = "the group has a member of this instance already"
	for _, protocol := range []string{"classic", "consumer"} {
		t.Run(protocol, func(t *testing.T) {
			testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
				topic := testkit.Topic(t, brokers, "orders", 1, nil)
				file := func(instance string) string {
					return writeInLog(t, instance, brokers[0], "127.0.0.1:0",
						strings.ReplaceAll(ordersTopic, "orders", topic)+
							"    group_protocol: "+protocol+"\n")
				}
				first := file("a")
				code, text := kdedup(t.Context(), "setup", "-c", first, "--skip-self-test")
				if code != 0 {
					t.Fatal(text)
				}
				begin := func(path string) *running {
					r := start(t, path)
					testkit.Eventually(t, time.Minute, "the process is ready", func() bool {
						return strings.Contains(r.out.String(), "msg=ready")
					})
					return r
				}
				a := begin(first)
				if text := a.out.String(); strings.Contains(text, told) {
					t.Errorf("the first says\n%s", text)
				}
				b := begin(file("b"))
				if text := b.out.String(); strings.Contains(text, told) {
					t.Errorf("one with an instance of its own says\n%s", text)
				}
				b.stopsWell()
				second := start(t, file("a"))
				testkit.Eventually(t, time.Minute, "a word of the first", func() bool {
					return strings.Contains(second.out.String(), told)
				})
				a.stopsWell()
				second.stopsWell()
			})
		})
	}
}
