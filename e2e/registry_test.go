package e2e_test

import (
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// waitForTheRegistry has a process begin while the registry does not answer, and kills it.
func (d *deployment) waitForTheRegistry(registry *servers.Server) {
	d.t.Helper()
	if err := registry.Pause(); err != nil {
		d.t.Fatal(err)
	}
	early := d.start("early")
	testkit.Eventually(d.t, time.Minute, "a lane that waits for the registry", func() bool {
		for _, metric := range early.scrape()["kdedup_blocked_seconds_total"].GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetValue() == "registry" && metric.GetCounter().GetValue() > 0 {
					return true
				}
			}
		}
		return false
	})
	early.kill()
	if err := registry.Resume(); err != nil {
		d.t.Fatal(err)
	}
	if committed, _ := d.progress(); committed > 0 {
		d.t.Errorf("%d records were committed while the registry did not answer", committed)
	}
}

func (d *deployment) mustHaveNoLetters() {
	d.t.Helper()
	if letters := flat(d.records(d.input + ".dlq")); len(letters) > 0 {
		d.t.Errorf("%d dead letters, such as %v", len(letters), letters[0].Headers)
	}
}
