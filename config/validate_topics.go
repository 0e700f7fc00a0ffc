package config

import (
	"reflect"
	"slices"
	"strings"
)

// checkTogether checks what no entry can break alone.
func checkTogether(p *problems, topics []Topic) {
	checkGroups(p, topics)
	checkInputs(p, topics)
	checkFences(p, topics)
	checkScopes(p, topics)
	for i := range topics {
		checkCycle(p, topics, i)
	}
}

func checkGroups(p *problems, topics []Topic) {
	first := map[string]int{}
	for i, t := range topics {
		if earlier, taken := first[t.ConsumerGroup]; taken && t.ConsumerGroup != "" {
			p.add(PlaceOf(topics, i)+".consumer_group", "",
				"must differ from that of %s, both are %q", PlaceOf(topics, earlier),
				t.ConsumerGroup)
			continue
		}
		first[t.ConsumerGroup] = i
	}
}

// checkInputs keeps an input for one entry: the series and the status page call a pipeline by its
// input. With equal scopes as well, each record would own its ID for both entries, and both would
// forward it.
func checkInputs(p *problems, topics []Topic) {
	first := map[string]int{}
	for i, t := range topics {
		earlier, taken := first[t.Input]
		if !taken || t.Input == "" {
			first[t.Input] = i
			continue
		}
		remedy := "metrics tell pipelines apart by their input: run one of the two in a process " +
			"of its own"
		if other := topics[earlier]; t.Scope == other.Scope && t.ScopeGroup == other.ScopeGroup {
			remedy = "with one scope both would forward every record: remove one, " +
				"or give it a scope_group of its own and run it in a process of its own"
		}
		p.add(PlaceOf(topics, i)+".input", remedy,
			"must differ from that of %s, both are %q", PlaceOf(topics, earlier), t.Input)
	}
}

// checkFences keeps every fence topic for its own entry: a foreign record in it, or its records in
// a clean topic, would be taken for what they are not.
func checkFences(p *problems, topics []Topic) {
	for i, fenced := range topics {
		for j, other := range topics {
			for _, r := range other.roles() {
				shared := i != j && fenced.FenceTopic != "" && r.name == fenced.FenceTopic
				if bothFences := r.key == "fence_topic"; shared && (!bothFences || i < j) {
					// what a template has named gives way
					if fenced.Origin.Pattern && (!other.Origin.Pattern || j < i) {
						p.add(PlaceOf(topics, i)+".fence_topic", "",
							"must differ from %s of %s, both are %q", r.key, PlaceOf(topics, j),
							r.name)
						continue
					}
					p.add(PlaceOf(topics, j)+"."+r.key, "",
						"must differ from the fence topic of %s, both are %q",
						PlaceOf(topics, i), r.name)
				}
			}
		}
	}
}

// checkScopes compares the entries that share claims. A claim means the same to all of them only
// if its ID is made in the same way and it is looked for in the same place for the same time.
func checkScopes(p *problems, topics []Topic) {
	type namespace struct{ group, name string }
	first := map[namespace]int{}
	for i, t := range topics {
		scope := namespace{t.ScopeGroup, t.Scope}
		earlier, shared := first[scope]
		if !shared || t.Scope == "" || t.ScopeGroup == "" {
			first[scope] = i
			continue
		}
		differ := func(key string, equal bool) {
			if !equal {
				p.add(PlaceOf(topics, i)+"."+key,
					"make them equal, or give one another scope",
					"must equal that of %s: both have the scope %q in the scope group %q",
					PlaceOf(topics, earlier), t.Scope, t.ScopeGroup)
			}
		}
		other := topics[earlier]
		differ("message_id", reflect.DeepEqual(t.MessageID, other.MessageID))
		differ("fingerprint", reflect.DeepEqual(t.Fingerprint, other.Fingerprint))
		differ("ttl", t.TTL == other.TTL)
		differ("ttl_from", t.TTLFrom == other.TTLFrom)
		differ("buckets", t.Buckets == other.Buckets)
	}
}

// checkCycle reports the topics through which records would come back to an entry's input for
// ever. A cycle is found from its first entry, so entries before it are left out.
func checkCycle(p *problems, topics []Topic, at int) {
	goal := topics[at].Input
	for _, r := range topics[at].written() {
		if chain := route(topics[at:], r.name, goal, map[string]bool{}); goal != "" &&
			chain != nil {
			p.add(PlaceOf(topics, at)+"."+r.key, "",
				"must not lead back to its own input: %s",
				strings.Join(slices.Insert(chain, 0, goal), " -> "))
		}
	}
}

// written lists the topics that get an input's records.
func (t Topic) written() []role {
	return slices.DeleteFunc(t.roles(), func(r role) bool {
		return r.key == "input" || r.key == "fence_topic"
	})
}

// route returns the topics on the way from one to the goal, both included, or nil.
func route(topics []Topic, from, goal string, visited map[string]bool) []string {
	if from == goal {
		return []string{goal}
	}
	if visited[from] {
		return nil
	}
	visited[from] = true
	for _, t := range topics {
		if t.Input != from {
			continue
		}
		for _, r := range t.written() {
			if rest := route(topics, r.name, goal, visited); rest != nil {
				return append([]string{from}, rest...)
			}
		}
	}
	return nil
}
