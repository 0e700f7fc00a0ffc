package testkit

import (
	"slices"
	"testing"
)

func TestTheSharesAreAllCasesEachOnce(t *testing.T) {
	cases := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	var all []int
	for share := range 4 {
		t.Setenv(ShareEnv, Shared(share+1, 4))
		all = append(all, Share(t, cases, nil)...)
	}
	slices.Sort(all)
	if !slices.Equal(all, cases) {
		t.Errorf("the four shares have %v", all)
	}
}

func TestWithoutAShareTheSampleIsTaken(t *testing.T) {
	t.Setenv(ShareEnv, "")
	if got := Share(t, []int{1, 2, 3}, []int{2}); !slices.Equal(got, []int{2}) {
		t.Errorf("got %v", got)
	}
	got := record(t, func(t testing.TB) { Share(t, []int{1, 2, 3}, nil) })
	if !got.Skipped {
		t.Errorf("with an empty sample: %+v", got)
	}
}

func TestAShareThatIsNoneIsRefused(t *testing.T) {
	for _, text := range []string{"0/3", "4/3", "1", "1/3/5", "a/b", "-1/3"} {
		if _, _, err := parseShare(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
