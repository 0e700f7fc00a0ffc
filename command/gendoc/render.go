package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed intro.txt
var intro string

//go:embed values.txt
var values string

// render writes a section for each subject. A family without a question and a question without a
// family are errors.
func render(families []family) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(intro)
	asked := 0
	for _, s := range subjects {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n", s.title, s.about)
		for _, q := range s.questions {
			at := slices.IndexFunc(families, func(f family) bool { return f.name == q.metric })
			if at < 0 {
				return nil, fmt.Errorf("%s has a question and is not registered", q.metric)
			}
			families[at].write(&out, q.asks)
			asked++
		}
	}
	if asked != len(families) {
		return nil, fmt.Errorf("without a question: %s", strings.Join(unasked(families), ", "))
	}
	out.WriteString("\n" + values)
	return out.Bytes(), nil
}

func (f family) write(out *bytes.Buffer, question string) {
	kind := f.kind
	if len(f.labels) > 0 {
		kind += " by `" + strings.Join(f.labels, "`, `") + "`"
	}
	fmt.Fprintf(out, "\n### `%s`\n\n**%s** (%s)\n", f.name, question, kind)
	if !strings.HasPrefix(f.name, "kdedup_kafka_client_") && !slices.Contains(told, f.name) {
		fmt.Fprintf(out, "\n%s\n", f.help)
	}
}

func unasked(families []family) (names []string) {
	for _, f := range families {
		known := slices.ContainsFunc(subjects, func(s subject) bool {
			return slices.ContainsFunc(s.questions, func(q question) bool {
				return q.metric == f.name
			})
		})
		if !known {
			names = append(names, f.name)
		}
	}
	return names
}
