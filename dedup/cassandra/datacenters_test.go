package cassandra_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/internal/testkit/cqltest"
)

func TestLocalSerialNeedsOneDataCentre(t *testing.T) {
	for _, c := range []struct {
		name            string
		peers           []string
		localDC, serial string
		want            string // empty: it starts
	}{
		{"one data centre", []string{"dc1"}, "", "LOCAL_SERIAL", ""},
		{"two", []string{"dc1", "dc2"}, "", "LOCAL_SERIAL", "the cluster has the data centres " +
			"dc1, dc2, and with LOCAL_SERIAL each decides for itself: " +
			"set store.cassandra.local_dc, the same for all processes, or serial_consistency to " +
			"SERIAL"},
		{"two, and one is named", []string{"dc1", "dc2"}, "dc1", "LOCAL_SERIAL", ""},
		{"two that decide together", []string{"dc1", "dc2"}, "", "SERIAL", ""},
		{"a name that is none", []string{"dc2"}, "DC1", "LOCAL_SERIAL",
			`no node is in the data centre "DC1"; set store.cassandra.local_dc to one of dc1, dc2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			options := optionsFor(t, cqltest.Start(t, cqltest.Dialect{Peers: c.peers}).Addr())
			create(t, options)
			options.LocalDC, options.SerialConsistency = c.localDC, c.serial
			store, err := cassandra.Open(t.Context(), options, prometheus.NewRegistry())
			if err == nil {
				_ = store.Close()
			}
			if got := errorText(err); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// The driver's policy for a data centre goes on to the nodes of others when no local one answers.
// What they decide with LOCAL_SERIAL is decided there.
func TestNodesOfOtherDataCentresAreNotAsked(t *testing.T) {
	// in dc1
	options := optionsFor(t, cqltest.Start(t, cqltest.Dialect{Peers: []string{"dc2"}}).Addr())
	create(t, options)
	options.LocalDC = "dc2"
	store, err := cassandra.Open(t.Context(), options, prometheus.NewRegistry())
	if err == nil {
		_ = store.Close()
		t.Error("a node of dc1 was asked")
	}
	if want := `store.cassandra.hosts must name nodes of the data centre "dc2"`; !strings.Contains(
		errorText(err), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
