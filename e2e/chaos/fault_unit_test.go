package chaos_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func first(p part, seed uint64, n int) []fault {
	var faults []fault
	for f := range schedule(p, seed) {
		if len(faults) == n {
			break
		}
		faults = append(faults, f)
	}
	return faults
}

func TestTheScheduleIsAPureFunctionOfTheSeed(t *testing.T) {
	for _, p := range parts {
		if diff := cmp.Diff(first(p, 7, 100), first(p, 7, 100)); diff != "" {
			t.Errorf("%s: two schedules of one seed differ:\n%s", p.name, diff)
		}
		if cmp.Equal(first(p, 7, 100), first(p, 8, 100)) {
			t.Errorf("%s: the seed does not change the schedule", p.name)
		}
	}
}

func TestPartsWithOneSeedAreIndependent(t *testing.T) {
	if cmp.Equal(first(parts[1], 7, 1)[0].After, first(parts[2], 7, 1)[0].After) {
		t.Error("two parts begin with the same pause: they draw the same numbers")
	}
}

func TestEveryKindComesBeforeOneComesAgain(t *testing.T) {
	for _, p := range parts {
		want, got := make(map[kind]int), make(map[kind]int)
		for _, k := range p.kinds {
			want[k]++
		}
		for _, f := range first(p, 3, len(p.kinds)) {
			got[f.Kind]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", p.name, diff)
		}
	}
}

func TestFaultsStayWithinTheirLimits(t *testing.T) {
	for _, p := range parts {
		for _, f := range first(p, 5, 500) {
			limits := durations[f.Kind]
			if f.For.Seconds() < limits[0] || f.For.Seconds() > limits[1] || f.For == 0 &&
				limits[0] > 0 {
				t.Errorf("%s lasts %v", f, f.For)
			}
			if f.Target < everyone || f.Target >= p.targets {
				t.Errorf("%s: %s has %d targets", f, p.name, p.targets)
			}
		}
	}
}

func TestAFrozenProcessIsFrozenBeyondItsSession(t *testing.T) {
	if least := time.Duration(
		durations[freezeProcess][0] * float64(time.Second),
	); least <= sessionTimeout {
		t.Errorf("frozen for %v, which may be within the session timeout of %v", least,
			sessionTimeout)
	}
}
