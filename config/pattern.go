package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// topicPlace stands for the name of the input in the settings of an entry with a pattern.
const topicPlace = "{topic}"

// patternLanes are those of each topic of a pattern: each lane has connections of its own.
const patternLanes = 1

// inputForm is `input: {pattern: …}`, which stands where the name of a topic may stand.
type inputForm struct {
	Pattern string `mapstructure:"pattern"`
}

// liftPatterns puts what stands in that form where Topic has it.
func liftPatterns(settings map[string]any) {
	entries, _ := settings["topics"].([]any)
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		form, is := fields["input"].(map[string]any)
		if !is {
			continue
		}
		delete(fields, "input")
		for key, value := range form {
			fields["input."+key] = value
		}
	}
}

// Origin says where in the file an entry of Expand comes from.
type Origin struct {
	// Path is topics[2], or topics[2] (tenant-a.orders) for a topic that a pattern matches.
	Path string
	// Pattern says that a pattern matches the input.
	Pattern bool
}

// PlaceOf is what errors call an entry.
func PlaceOf(topics []Topic, i int) string {
	if at := topics[i].Origin.Path; at != "" {
		return at
	}
	return fmt.Sprintf("topics[%d]", i)
}

// template is a setting in which {topic} may stand.
type template struct {
	key   string
	value *string
}

func (t *Topic) templates() []template {
	return []template{
		{"output", &t.Output}, {"consumer_group", &t.ConsumerGroup},
		{"duplicates_topic", &t.DuplicatesTopic}, {"dead_letter_topic", &t.DeadLetterTopic},
		{"fence_topic", &t.FenceTopic}, {"scope", &t.Scope}, {"scope_group", &t.ScopeGroup},
	}
}

// of is the entry of one of the topics that the pattern matches.
func (t Topic) of(topic string) Topic {
	t.Input, t.Pattern = topic, ""
	for _, setting := range t.templates() {
		*setting.value = strings.ReplaceAll(*setting.value, topicPlace, topic)
	}
	return t
}

// PatternOf is the entry whose pattern an entry of Expand comes from, with the pattern in the place
// of the topic.
func (c Config) PatternOf(t Topic) (entry Topic, found bool) {
	for i, p := range c.Topics {
		if p.Pattern != "" && strings.HasPrefix(t.Origin.Path, fmt.Sprintf("topics[%d] (", i)) {
			return p.of(p.Pattern), true
		}
	}
	return Topic{}, false
}

// matcher matches whole names, as Kafka's own consumers and connectors do.
func (t Topic) matcher() (*regexp.Regexp, error) {
	if _, err := regexp.Compile(t.Pattern); err != nil {
		return nil, err // about what stands in the file
	}
	return regexp.Compile("^(?:" + t.Pattern + ")$")
}

// checkPattern checks what only an entry with a pattern has.
func (t Topic) checkPattern(p *problems, path string) {
	at := path + ".input.pattern"
	if t.Input != "" {
		p.add(at, "remove one", "must not stand beside the name of an input, got %q and %q",
			t.Input, t.Pattern)
	}
	if _, err := t.matcher(); err != nil {
		p.add(at, "", "must be a regular expression: %v", err)
	}
	for _, s := range t.templates() {
		ofScope := s.key == "scope" || s.key == "scope_group"
		if !ofScope && *s.value != "" && !strings.Contains(*s.value, topicPlace) {
			p.add(path+"."+s.key, "write "+topicPlace+" where the input's name belongs",
				"must have %s in it, because a pattern stands for many topics, got %q", topicPlace,
				*s.value)
		}
	}
	if !strings.Contains(t.Scope+t.ScopeGroup, topicPlace) {
		p.add(path+".scope", "write "+topicPlace+" in one of the two, or name the topics that "+
			"share their claims in entries of their own",
			"must have %s in it, or scope_group must: got %q and %q", topicPlace, t.Scope,
			t.ScopeGroup)
	}
}

// exactOf are the entries that name their input, with their places.
func exactOf(topics []Topic) (exact []Topic) {
	for i, t := range topics {
		if t.Pattern == "" {
			t.Origin.Path = PlaceOf(topics, i)
			exact = append(exact, t)
		}
	}
	return exact
}

// HasPatterns reports whether Expand needs the topics of the cluster.
func (c Config) HasPatterns() bool {
	return slices.ContainsFunc(c.Topics, func(t Topic) bool { return t.Pattern != "" })
}

// Expand returns the configuration with an entry for each topic that a pattern matches, in the
// place of the pattern; topics are those of the cluster. It leaves out the topics that cannot have
// one, and errs says why, for each. Topics that an entry names, that begin with two underscores, or
// that an entry would write itself are no inputs of a pattern, whether that entry's input exists or
// not: so no record can go in a circle.
func (c Config) Expand(topics []string) (expanded Config, errs []error) {
	if !c.HasPatterns() {
		return c, nil
	}
	x := newExpansion(c)
	matched := make(map[int][]Topic) // by the entry with the pattern
	for _, topic := range slices.Compact(slices.Sorted(slices.Values(topics))) {
		if at := x.entryOf(topic); at >= 0 {
			t := c.Topics[at].of(topic)
			t.Origin = Origin{fmt.Sprintf("topics[%d] (%s)", at, topic), true}
			matched[at] = append(matched[at], t)
		}
	}
	x.check(matched)
	all := c.Topics
	c.Topics = nil
	for i, t := range all {
		if t.Pattern == "" {
			t.Origin.Path = PlaceOf(all, i)
			c.Topics = append(c.Topics, t)
		}
		for _, t := range matched[i] {
			if !x.refused[t.Origin.Path] {
				c.Topics = append(c.Topics, t)
			}
		}
	}
	return c, x.errs
}

// expansion is one call of Expand.
type expansion struct {
	config   Config
	exact    []Topic
	patterns map[int]*regexp.Regexp
	refused  map[string]bool // by Origin.Path
	errs     []error
}

func newExpansion(c Config) *expansion {
	x := &expansion{config: c, exact: exactOf(c.Topics), patterns: map[int]*regexp.Regexp{},
		refused: map[string]bool{}}
	for i, t := range c.Topics {
		if t.Pattern == "" {
			continue
		}
		var err error
		if x.patterns[i], err = t.matcher(); err != nil {
			panic(err) // Validate has refused it
		}
	}
	return x
}

// entryOf finds the entry whose pattern makes the topic its input; -1 is none.
func (x *expansion) entryOf(topic string) int {
	var found []int
	for i := range x.config.Topics {
		if x.patterns[i] != nil && x.patterns[i].MatchString(topic) {
			found = append(found, i)
		}
	}
	switch named := func(t Topic) bool { return t.Input == topic }; {
	case len(found) == 0, slices.ContainsFunc(x.exact, named), x.madeHere(topic):
		return -1
	case len(found) > 1:
		x.errs = append(x.errs, &Error{
			Path:    fmt.Sprintf("topics[%d].input.pattern", found[1]),
			Problem: fmt.Sprintf("matches %s, as the pattern of topics[%d] does", topic, found[0]),
			Remedy:  "change one of them, or give the topic an entry of its own",
		})
		return -1
	}
	return found[0]
}

// madeHere reports whether the topic is one that an entry writes, kdedup setup makes, or Kafka
// keeps for itself.
func (x *expansion) madeHere(topic string) bool {
	if strings.HasPrefix(topic, "__") {
		return true
	}
	for i, t := range x.config.Topics {
		for _, name := range t.writes(x.config.Store) {
			input, fits := filledIn(name, topic)
			if fits && (x.patterns[i] == nil || x.patterns[i].MatchString(input)) {
				return true
			}
		}
	}
	return false
}

// writes are the names, or the templates of the names, of all topics of an entry but the input.
func (t Topic) writes(s Store) []string {
	all := []string{t.Output, t.DuplicatesTopic, t.DeadLetterTopic, t.FenceTopic,
		t.ConsumerGroup + ".redrive"}
	if s.Type == StoreKafka {
		claims := strings.ReplaceAll(s.Kafka.Topic, "{group}", t.ScopeGroup)
		all = append(all, claims, claims+".scopes")
	}
	return all
}

// filledIn finds the name that stands for {topic} where the template gives the text. A template
// without that place gives but one text.
func filledIn(template, text string) (name string, fits bool) {
	places := strings.Count(template, topicPlace)
	if places == 0 {
		return "", template == text
	}
	room := len(text) - (len(template) - places*len(topicPlace))
	begin := strings.Index(template, topicPlace)
	if room <= 0 || room%places != 0 {
		return "", false
	}
	name = text[begin : begin+room/places]
	return name, strings.ReplaceAll(template, topicPlace, name) == text
}

// check refuses the matched topics whose entries cannot stand beside the others. Entries that name
// their input come first: what checkTogether finds, it finds in the later of two.
func (x *expansion) check(matched map[int][]Topic) {
	together := slices.Clone(x.exact)
	p := &problems{}
	for i := range x.config.Topics {
		for _, t := range matched[i] {
			t.checkNames(p, t.Origin.Path)
			together = append(together, t)
		}
	}
	checkOutputs(p, together)
	checkTogether(p, together)
	for _, e := range p.found {
		x.errs = append(x.errs, e)
		for _, t := range together {
			if covers(t.Origin.Path, e.Path) {
				x.refused[t.Origin.Path] = true
			}
		}
	}
}

// checkOutputs keeps topics of different inputs apart that templates made equal. Entries that name
// their inputs may share outputs: there somebody wrote the same name twice.
func checkOutputs(p *problems, topics []Topic) {
	first := map[string]int{}
	for i, t := range topics {
		for _, r := range t.written() {
			earlier, taken := first[r.name]
			if !taken {
				first[r.name] = i
			} else if t.Origin.Pattern && earlier != i {
				p.add(PlaceOf(topics, i)+"."+r.key, "change one of the templates",
					"must differ from the topics of %s, both are %q", PlaceOf(topics, earlier),
					r.name)
			}
		}
	}
}

// EntryOf is the entry that reads the input: one that names it, or that of a pattern.
func (c Config) EntryOf(input string) (Topic, bool) {
	expanded, _ := c.Expand([]string{input})
	at := slices.IndexFunc(expanded.Topics, func(t Topic) bool { return t.Input == input })
	if at < 0 {
		return Topic{}, false
	}
	return expanded.Topics[at], true
}
