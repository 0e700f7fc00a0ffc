package deploy

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
)

const (
	rulesFile = "../charts/kdedup/rules/kdedup.yaml"
	casesFile = "testdata/alerts.yaml"
	runbook   = "https://github.com/kdedup/kdedup/blob/main/docs/runbook.md#"
)

type rule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	readYAML(t, rulesFile, &file)
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func alerts(t *testing.T) []rule {
	t.Helper()
	return slices.DeleteFunc(rules(t), func(r rule) bool { return r.Alert == "" })
}

// Each alert fires on the series that it is for and is silent on those that look like them.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	promtool := testkit.Program(t, "promtool", "prometheus")
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"test", "rules", casesFile}} {
		if out, err := exec.CommandContext(
			t.Context(), promtool, args...,
		).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func TestEveryAlertIsTestedFiringAndSilent(t *testing.T) {
	var cases struct {
		Tests []struct {
			Alerts []struct {
				Name   string `yaml:"alertname"`
				Expect []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	readYAML(t, casesFile, &cases)
	firing, silent := make(map[string]bool), make(map[string]bool)
	for _, c := range cases.Tests {
		for _, a := range c.Alerts {
			if len(a.Expect) > 0 {
				firing[a.Name] = true
			} else {
				silent[a.Name] = true
			}
		}
	}
	for _, a := range alerts(t) {
		if !firing[a.Alert] || !silent[a.Alert] {
			t.Errorf("%s: tested firing: %t, silent: %t", a.Alert, firing[a.Alert], silent[a.Alert])
		}
	}
}

func TestAlertsTellWhatToDo(t *testing.T) {
	sections := sectionsOf(read(t, "../docs/runbook.md"))
	for _, a := range alerts(t) {
		if severity := a.Labels["severity"]; !slices.Contains([]string{"critical", "warning",
			"info"}, severity) {
			t.Errorf("%s has the severity %q", a.Alert, severity)
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s lacks a summary or a description", a.Alert)
		}
		anchor := strings.ToLower(a.Alert)
		if a.Annotations["runbook_url"] != runbook+anchor {
			t.Errorf("%s points to %q", a.Alert, a.Annotations["runbook_url"])
		}
		checkSection(t, a.Alert, sections[anchor])
		delete(sections, anchor)
	}
	for anchor := range sections {
		if strings.HasPrefix(anchor, "kdedup") {
			t.Errorf("docs/runbook.md has a section %s, and no alert has that name", anchor)
		}
	}
}

// checkSection wants the four things that an operator looks for.
func checkSection(t *testing.T, alert, section string) {
	t.Helper()
	for _, part := range []string{"**What it means.**", "**Look at.**", "**Do.**", "**Do not.**"} {
		if !strings.Contains(section, part) {
			t.Errorf("the section of %s in docs/runbook.md lacks %s", alert, part)
		}
	}
}

var heading = regexp.MustCompile(`(?m)^## (.+)$`)

// sectionsOf returns the text under each heading of the second level, by the heading's anchor.
func sectionsOf(text string) map[string]string {
	sections := make(map[string]string)
	all := heading.FindAllStringSubmatchIndex(text, -1)
	for i, at := range all {
		end := len(text)
		if i+1 < len(all) {
			end = all[i+1][0]
		}
		anchor := strings.ReplaceAll(strings.ToLower(text[at[2]:at[3]]), " ", "-")
		sections[anchor] = text[at[1]:end]
	}
	return sections
}

func TestRulesAskForMetricsThatExist(t *testing.T) {
	known := documented(t)
	for _, r := range rules(t) {
		for _, name := range metricInText.FindAllString(r.Expr, -1) {
			if !slices.Contains(known, strings.TrimSuffix(name, "_count")) {
				t.Errorf("%s%s asks for %s, which does not exist", r.Alert, r.Record, name)
			}
		}
	}
}

func TestTheRunbookNamesMetricsThatExist(t *testing.T) {
	known := documented(t)
	for _, name := range metricInText.FindAllString(read(t, "../docs/runbook.md"), -1) {
		if !slices.Contains(known, ofHistogram.ReplaceAllString(strings.TrimSuffix(name, "_count"),
			"_seconds")) {
			t.Errorf("the runbook names %s, which does not exist", name)
		}
	}
}
