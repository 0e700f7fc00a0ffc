package pipeline_test

import (
	"crypto/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/testkit"
)

// guarded is a site whose pipeline logs in as a user that may do everything, until it is denied.
func guarded(t *testing.T, transactional bool) *site {
	t.Helper()
	allowed := func(kind kmsg.ACLResourceType) kfake.ACL {
		return kfake.ACL{
			Resource: kind, Name: "*", Pattern: kmsg.ACLResourcePatternTypeLiteral,
			Operation: kmsg.ACLOperationAll, Allow: true,
		}
	}
	cluster, addresses := testkit.FakeKafka(t, kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("PLAIN", "admin", "admin"),
		kfake.User("PLAIN", "kdedup", "secret",
			allowed(kmsg.ACLResourceTypeTopic), allowed(kmsg.ACLResourceTypeGroup),
			allowed(kmsg.ACLResourceTypeTransactionalId), allowed(kmsg.ACLResourceTypeCluster)))
	s := &site{
		rig: newRig(t, addresses,
			kgo.SASL(plain.Auth{User: "admin", Pass: "admin"}.AsMechanism())),
		cluster: cluster,
	}
	s.transactional = transactional
	s.connection = []kgo.Opt{
		kgo.SeedBrokers(addresses...),
		kgo.SASL(plain.Auth{User: "kdedup", Pass: "secret"}.AsMechanism()),
		kgo.RetryBackoffFn(soon), kgo.MetadataMinAge(20 * time.Millisecond),
	}
	return s
}

// An ACL is taken away in mid-run and given back.
func TestARevokedPermissionHoldsUpTheLanesUntilItIsGranted(t *testing.T) {
	deny := func(operation kadm.ACLOperation) *kadm.ACLBuilder {
		return kadm.NewACLs().Deny("User:kdedup").DenyHosts("*").ResourcePatternType(
			kadm.ACLPatternLiteral).Operations(operation)
	}
	cases := []struct {
		name, says    string
		acl           *kadm.ACLBuilder
		transactional bool // happens only there
	}{
		{"write the output", "TOPIC_AUTHORIZATION_FAILED", deny(kadm.OpWrite).Topics(output),
			false},
		{"write the fence", "TOPIC_AUTHORIZATION_FAILED", deny(kadm.OpWrite).Topics(fence), false},
		{"read the input", "TOPIC_AUTHORIZATION_FAILED", deny(kadm.OpRead).Topics(input), false},
		{"read the group", "GROUP_AUTHORIZATION_FAILED", deny(kadm.OpRead).Groups(group), false},
		{"write the transactional ID", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
			deny(kadm.OpWrite).TransactionalIDs(group + "-one-0"), true},
	}
	for _, c := range cases {
		for _, delivery := range []string{"exactly_once", "at_least_once"} {
			if c.transactional && delivery == "at_least_once" {
				continue
			}
			t.Run(c.name+"/"+delivery, func(t *testing.T) {
				t.Parallel()
				s := guarded(t, delivery == "exactly_once")
				s.lanes = 1
				s.produce(orders(500, 70)...)
				run := s.start("one")
				s.waitCommitted(500)
				admin := kadm.NewClient(s.client)
				if created, err := admin.CreateACLs(t.Context(), c.acl); err != nil ||
					created[0].Err != nil {
					t.Fatal(created, err)
				}
				s.produce(fresh(400)...)
				s.waitLogged("lane failed, joining again", c.says,
					"the Kafka ACLs of this user do not allow it")
				testkit.Eventually(t, 30*time.Second, "a pipeline that is not ready and says why",
					func() bool {
						err := run.Ready()
						return err != nil && strings.Contains(err.Error(), c.says)
					})
				if deleted, err := admin.DeleteACLs(t.Context(), c.acl); err != nil ||
					deleted[0].Err != nil {
					t.Fatal(deleted, err)
				}
				s.waitCommitted(900)
				// Without the fence at_least_once cannot tell what it has forwarded: each try
				// repeats the batch.
				s.checkClean(s.transactional || c.name != "write the fence")
				testkit.Eventually(t, 30*time.Second, "a ready pipeline", func() bool {
					return run.Ready() == nil
				})
			})
		}
	}
}

// The limit is lowered below what a batch holds. What does not fit any more is found and
// dead-lettered, and then the lane joins again to read the limits.
func TestALimitThatIsLoweredIsReadAnew(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.lanes = 1
		s.limits = s.readLimits
		big := rand.Text()
		for len(big) < 3000 { // must not shrink when it is compressed
			big += rand.Text()
		}
		s.produce(message(0, "a", "A"))
		s.start("one")
		s.waitCommitted(1)
		limit := "2000"
		_, err := kadm.NewClient(s.client).AlterTopicConfigs(t.Context(),
			[]kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &limit}},
			output)
		if err != nil {
			t.Fatal(err)
		}
		s.produce(message(0, "b", "B"), message(0, "c", big), message(0, "d", "D"))
		s.waitLogged("joining again to read the limits of its topics")
		s.waitCommitted(4)
		if texts := s.texts(output); !cmp.Equal(texts, []string{"0:A", "0:B", "0:D"}) {
			t.Errorf("on the clean topic: %q", texts)
		}
		if diff := cmp.Diff([]string{"0:" + big}, s.texts(deadTopic)); diff != "" {
			t.Error(diff)
		}
		checkHeaders(t, s.read(deadTopic)[0][0],
			map[string]string{forwarder.HeaderReason: "record_too_large"})
		if n := s.failures(); n != 0 {
			t.Errorf("the lane failed %v times", n)
		}
	})
}

// readLimits reads max.message.bytes of the output, as the process does.
func (r *rig) readLimits() (map[string]int, error) {
	described, err := kadm.NewClient(r.client).DescribeTopicConfigs(r.t.Context(), output)
	if err != nil {
		return nil, err
	}
	limits := make(map[string]int)
	for _, c := range described[0].Configs {
		if c.Key == "max.message.bytes" {
			limits[output], err = strconv.Atoi(c.MaybeValue())
		}
	}
	return limits, err
}
