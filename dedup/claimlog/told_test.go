package claimlog

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/internal/testkit"
)

// timedSteps are the steps of claims that a process has timed.
func timedSteps(t *testing.T, reg *prometheus.Registry) (names []string) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "kdedup_claim_log_step_duration_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "step" && m.GetHistogram().GetSampleCount() > 0 {
					names = append(names, l.GetValue())
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// Each process times what it does for a claim, and knows who keeps what.
func TestWhoKeepsWhatAndTheStepsOfAClaimAreTold(t *testing.T) {
	logs, net := newFakeLogs(2), newFakeNet()
	open := func(name string, keeps bool) (*Store, *prometheus.Registry) {
		reg := prometheus.NewRegistry()
		s := open(t, Options{Opener: logs, Registerer: reg, Keepers: &Keepers{Instance: name,
			Address: name, Keep: keeps, Network: net.node(name), times: quickSharing}})
		return s, reg
	}
	keeper, served := open("keeper", true)
	if err := keeper.Use(testScope); err != nil {
		t.Fatal(err)
	}
	lanes, asked := open("lanes", false)
	mustClaimAll(t, lanes, 0, 20)
	if got := timedSteps(t, served); !slices.Equal(got, []string{"answer", "append", "read_back"}) {
		t.Errorf("the keeper has timed %v", got)
	}
	if got := timedSteps(t, asked); !slices.Equal(got, []string{"ask"}) {
		t.Errorf("the lanes have timed %v", got)
	}
	of := func(s *Store, instance string) (found Keeper) {
		for _, k := range s.States()[0].Keepers {
			if k.Instance == instance {
				found = k
			}
		}
		return found
	}
	for _, s := range []*Store{keeper, lanes} {
		k, none := of(s, "keeper"), of(s, "lanes")
		if !k.Keeps || !k.Reached || !slices.Equal(k.Shards, []int{0, 1}) {
			t.Errorf("%s takes the keeper for %+v", s.o.Keepers.Instance, k)
		}
		if none.Keeps || len(none.Shards) > 0 {
			t.Errorf("%s takes the lanes for %+v", s.o.Keepers.Instance, none)
		}
	}
	if err := keeper.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 30*time.Second, "the keeper is gone", func() bool {
		return of(lanes, "keeper").Instance == ""
	})
}
