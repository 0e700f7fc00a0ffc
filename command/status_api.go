package command

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// apiNow is what is shown of the API.
type apiNow struct {
	Address, State, Error string
	UnderWay              int `json:"under_way"`
	Requests              rateNow
	Refused               []rateNow
	Scopes                []struct {
		Name          string
		Judged, Begun rateNow
		Verdicts      []rateNow
		InHand        int `json:"keys_in_hand"`
	}
	Callers []struct {
		Name, Proof string
		Scopes      []string
		Requests    rateNow
	}
}

type rateNow struct {
	Name      string
	Total     float64
	PerSecond *float64 `json:"per_second"`
}

func (a *apiNow) show(out io.Writer) {
	if a == nil {
		return
	}
	fmt.Fprintf(out, "\napi  %s  %s  %s requests/s, %d under way", a.Address, a.State,
		perSecond(a.Requests.PerSecond), a.UnderWay)
	for _, r := range a.Refused {
		if r.Total > 0 {
			fmt.Fprintf(out, ", %.0f refused: %s", r.Total, r.Name)
		}
	}
	fmt.Fprintln(out)
	if a.Error != "" {
		fmt.Fprintln(out, "  "+a.Error)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SCOPE\tJUDGED/S\tDUPLICATES\tBEGUN/S\tKEYS IN HAND")
	for _, s := range a.Scopes {
		copies := 0.0
		for _, v := range s.Verdicts {
			if v.Name == "duplicate" || v.Name == "conflict" {
				copies += v.Total
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%.0f\t%s\t%d\n", s.Name, perSecond(s.Judged.PerSecond),
			copies, perSecond(s.Begun.PerSecond), s.InHand)
	}
	_ = table.Flush()
	if len(a.Callers) > 0 {
		fmt.Fprintln(table, "CALLER\tREQUESTS/S\tKNOWN BY\tSCOPES")
	}
	for _, c := range a.Callers {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", c.Name, perSecond(c.Requests.PerSecond), c.Proof,
			strings.Join(c.Scopes, ", "))
	}
	_ = table.Flush()
}
