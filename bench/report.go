package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Report is everything that one call of the benchmark found.
type Report struct {
	Mode    string    `json:"mode"`
	Date    time.Time `json:"date"`
	Command string    `json:"command"`
	Machine Machine   `json:"machine"`
	Skipped []string  `json:"skipped,omitempty"`
	Runs    []Run     `json:"runs,omitempty"`
	Latency []Latency `json:"latency,omitempty"`

	Tortures []Torture `json:"tortures,omitempty"`
}

// save writes the report as JSON into the directory and returns the name of the file.
func (r *Report) save(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("save the results: %w", err)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", fmt.Errorf("save the results: %w", err)
	}
	name := filepath.Join(dir, r.Date.Format("20060102-150405")+"-"+r.Mode+".json")
	if err := os.WriteFile(name, append(text, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("save the results: %w", err)
	}
	return name, nil
}

// markdown is the report as it stands in the document.
func (r *Report) markdown(m mode) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, `%s`  \n%s  \n", r.Date.Format("2006-01-02"), r.Command, r.Machine)
	fmt.Fprintf(&b, "%s\n", strings.Join(append([]string{r.Machine.Kdedup, r.Machine.Go},
		r.Machine.Servers...), ", "))
	if r.Machine.Busy() {
		fmt.Fprintf(&b, "\n**The machine was busy** before the start (%.1f of %d cores): compare "+
			"rows, and trust no figure by itself.\n",
			r.Machine.Load, r.Machine.Cores)
	}
	b.WriteString("\n")
	switch {
	case m.latency:
		b.WriteString(latencyTable(r.Latency))
	case m.torture:
		b.WriteString(tortureTable(r.Tortures))
	default:
		b.WriteString(runsTable(r.Runs, m))
	}
	for _, skipped := range r.Skipped {
		fmt.Fprintf(&b, "\nSkipped: %s\n", skipped)
	}
	return b.String()
}

// Markers around the part of the document that a mode writes.
func beginMarker(mode string) string { return "<!-- bench " + mode + " -->" }
func endMarker(mode string) string   { return "<!-- /bench " + mode + " -->" }

// replaceBetween puts the text between the markers of a mode.
func replaceBetween(document, mode, text string) (string, error) {
	before, rest, ok := strings.Cut(document, beginMarker(mode))
	_, after, ok2 := strings.Cut(rest, endMarker(mode))
	if !ok || !ok2 {
		return "", fmt.Errorf("there is no %s … %s", beginMarker(mode), endMarker(mode))
	}
	return before + beginMarker(mode) + "\n" + strings.TrimSpace(text) + "\n" + endMarker(mode) +
		after, nil
}

// rewrite changes the document in place.
func (r *Report) rewrite(path string, m mode) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("rewrite the document: %w", err)
	}
	changed, err := replaceBetween(string(document), m.name, r.markdown(m))
	if err != nil {
		return fmt.Errorf("rewrite %s: %w", path, err)
	}
	return os.WriteFile(path, []byte(changed), 0o644)
}
