package redrive

import "testing"

func TestARedriveInWhichAllWasRefusedIsAnError(t *testing.T) {
	cases := []struct {
		name   string
		report Report
		fails  bool
	}{
		{"no letters", Report{}, false},
		{"none was selected", Report{Read: 3, NotSelected: 3}, false},
		{"all were refused", Report{Read: 3, Refused: []Refusal{{Letters: 2}, {Letters: 1}}}, true},
		{"one was redriven", Report{Read: 3, Redriven: 1, Refused: []Refusal{{Letters: 2}}}, false},
		{"one was redriven before", Report{Read: 3, Earlier: 1, Refused: []Refusal{{Letters: 2}}},
			false},
		{"all would be refused", Report{Read: 3, DryRun: true, Refused: []Refusal{{Letters: 3}}},
			false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := c.report.NothingDone(); (err != nil) != c.fails {
				t.Errorf("got %v", err)
			}
		})
	}
}
