package consumer

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestRecordsBehindAnOpenTransactionAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		var text strings.Builder
		m := newMember(Options{Metrics: NewCollectors(reg).For("orders"),
			Logger: slog.New(slog.NewTextHandler(&text, nil))})
		m.partitions[3] = newPartition(1)
		check := func(records, seconds float64) {
			t.Helper()
			want := fmt.Sprintf(
				"kdedup_input_open_transaction_records{partition=\"3\",topic=\"orders\"} %v\n"+
					"kdedup_input_open_transaction_seconds{partition=\"3\",topic=\"orders\"} "+
					"%v\n", records, seconds)
			if got := seriesOf(t, reg, "kdedup_input_open_transaction_"); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		step := func(stable, end int64) {
			m.noteHidden(3, Bounds{End: stable, High: end}, time.Now())
			m.warnOfHidden()
			time.Sleep(50 * time.Second) // of the bubble
		}
		step(10, 10)
		check(0, 0)
		step(10, 12)
		check(2, 0)
		step(10, 50)
		check(40, 50)
		if text.Len() > 0 {
			t.Errorf("after less than a minute: %s", text.String())
		}
		step(10, 60)
		check(50, 100)
		if got := text.String(); !strings.Contains(got, "partition=3 from=10 records=50") {
			t.Errorf("logged: %s", got)
		}
		step(11, 60) // another transaction
		check(49, 0)
		step(60, 60)
		check(0, 0)
		m.drop("partitions revoked", []int32{3})
		if got := seriesOf(t, reg, "kdedup_input_open_transaction_"); got != "" {
			t.Errorf("series of a partition that is gone: %s", got)
		}
	})
}

// seriesOf are the gauges whose names begin with a prefix, one a line.
func seriesOf(t *testing.T, reg *prometheus.Registry, prefix string) (lines string) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if !strings.HasPrefix(f.GetName(), prefix) {
				continue
			}
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			lines += fmt.Sprintf("%s{%s} %v\n", f.GetName(), strings.Join(labels, ","),
				m.GetGauge().GetValue())
		}
	}
	return lines
}
