package e2e_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// kafkaUser is what Strimzi's User Operator reads of a KafkaUser.
type kafkaUser struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Authentication struct{ Type string }
		Authorization  struct {
			Type string
			ACLs []struct {
				Resource struct {
					Type, Name  string
					PatternType string `yaml:"patternType"`
				}
				Operations []string
			}
		}
	}
}

func (u kafkaUser) acls(t *testing.T) (all []acl) {
	t.Helper()
	kinds := map[string]string{"topic": "--topic", "group": "--group",
		"transactionalId": "--transactional-id"}
	patterns := map[string]bool{"": false, "prefix": true}
	for _, rule := range u.Spec.Authorization.ACLs {
		kind, known := kinds[rule.Resource.Type]
		prefixed, right := patterns[rule.Resource.PatternType]
		if !known || !right {
			t.Fatalf("Strimzi knows no %+v", rule.Resource)
		}
		for _, operation := range rule.Operations {
			all = append(all, acl{"User:" + u.Metadata.Name, kind, rule.Resource.Name, operation,
				prefixed})
		}
	}
	return all
}

// TestSecurity runs with the rights of the manual, and these are the same.
func TestTheKafkaUsersOfStrimziHaveTheRightsOfTheManual(t *testing.T) {
	const ofClaimLog = "      # With store.type: kafka, the claim log."
	manual, asTheyAre := readManual(t), strings.NewReplacer()
	for file, what := range map[string]string{"exactly-once": "run, exactly_once",
		"at-least-once": "run, at_least_once", "setup": "setup"} {
		text, err := os.ReadFile("../deploy/strimzi/" + file + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		want := manual.acls("Kafka ACLs of "+what, asTheyAre)
		command, _, _ := strings.Cut(what, ",")
		withLog := manual.acls("Kafka ACLs of "+command+", with a claim log", asTheyAre)
		without, _, found := strings.Cut(string(text), ofClaimLog)
		if !found {
			t.Errorf("%s: nothing says which rights are those of a claim log", file)
		}
		sameACLs(t, file, want, decodeKafkaUser(t, without).acls(t))
		sameACLs(t, file, slices.Concat(want, withLog), decodeKafkaUser(t, string(text)).acls(t))
	}
}

func decodeKafkaUser(t *testing.T, text string) (u kafkaUser) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&u); err != nil {
		t.Fatal(err)
	}
	if u.APIVersion != "kafka.strimzi.io/v1" || u.Kind != "KafkaUser" ||
		u.Metadata.Labels["strimzi.io/cluster"] == "" ||
		u.Spec.Authentication.Type != "scram-sha-512" || u.Spec.Authorization.Type != "simple" {
		t.Errorf("got %+v", u)
	}
	return u
}

func sameACLs(t *testing.T, file string, want, got []acl) {
	t.Helper()
	sorted := func(all []acl) []acl {
		return slices.SortedFunc(slices.Values(all), func(a, b acl) int {
			return strings.Compare(a.name+" "+a.operation, b.name+" "+b.operation)
		})
	}
	if diff := cmp.Diff(sorted(want), sorted(got), cmp.AllowUnexported(acl{})); diff != "" {
		t.Errorf("%s (-docs/security.md +file):\n%s", file, diff)
	}
}
