package client

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/testkit"
)

// used is an input of two partitions with ten records on each, and a group to which something is
// done.
type used struct {
	t      *testing.T
	client *kgo.Client
	admin  *kadm.Client
	group  Group
}

func newUsed(t *testing.T, brokers []string, fromEnd bool) *used {
	t.Helper()
	u := &used{t: t, client: testkit.KafkaClient(t, brokers)}
	u.admin = kadm.NewClient(u.client)
	input := testkit.Topic(t, brokers, "orders", 2, nil)
	u.group = Group{Name: input + "-group", Input: input,
		FenceTopic: testkit.Topic(t, brokers, "fences", 2, nil), FromEnd: fromEnd}
	for p := range int32(2) {
		for range 10 {
			if err := u.client.ProduceSync(
				t.Context(), &kgo.Record{Topic: input, Partition: p},
			).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return u
}

// commit does what another program does, and what kdedup did before its mark.
func (u *used) commit(partition int32, at int64) {
	u.t.Helper()
	offsets := make(kadm.Offsets)
	offsets.AddOffset(u.group.Input, partition, at, -1)
	if err := u.admin.CommitAllOffsets(u.t.Context(), u.group.Name, offsets); err != nil {
		u.t.Fatal(err)
	}
}

func (u *used) fence(partition int32, next int64, group string) {
	u.t.Helper()
	f := fence.Fence{}.Advance(fence.Span{Next: next, Group: group, Now: time.Now()})
	if err := u.client.ProduceSync(
		u.t.Context(), fence.Record(u.group.FenceTopic, u.group.Input, partition, f),
	).FirstErr(); err != nil {
		u.t.Fatal(err)
	}
}

func TestOffsetsThatKdedupDidNotCommitAreRefused(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		cases := []struct {
			name    string
			fromEnd bool
			use     func(u *used)
			refused string
		}{
			{"a new group", false, func(*used) {}, ""},
			{"another program read a part", false, func(u *used) { u.commit(1, 8) }, "IN[1] at 8"},
			{"another program read a part, start at the end", true, func(u *used) {
				u.commit(1, 8)
			}, "IN[1] at 8"},
			{"another program read nothing", false, func(u *used) { u.commit(1, 0) }, ""},
			{"another program read all", false, func(u *used) { u.commit(1, 10) }, "IN[1] at 10"},
			{"what it leaves out is left out anyway", true, func(u *used) { u.commit(1, 10) }, ""},
			{"the offset has a fence", false, func(u *used) {
				u.commit(1, 8)
				u.fence(1, 8, u.group.Name)
			}, ""},
			{"another partition has a fence", false, func(u *used) {
				u.commit(1, 8)
				u.fence(0, 8, u.group.Name)
			}, "IN[1] at 8"},
			{"an earlier version pinned it", true, func(u *used) {
				u.commit(1, 8)
				u.fence(0, 8, u.group.Name)
			}, ""},
			{"the fences are of another group", true, func(u *used) {
				u.commit(1, 8)
				u.fence(0, 8, "other")
			}, "IN[1] at 8"},
			{"a start that was pinned", true, func(u *used) {
				if err := u.group.PinStart(t.Context(), u.client, Start{Skips: quiet}); err != nil {
					t.Fatal(err)
				}
				u.group.FromEnd = false // the strict view of it
			}, ""},
		}
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				u := newUsed(t, brokers, c.fromEnd)
				c.use(u)
				err := u.group.Check(t.Context(), u.client)
				if c.refused == "" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if !errors.Is(err, consumer.ErrStrangeOffsets) ||
					!strings.Contains(err.Error(), strings.ReplaceAll(c.refused,
						"IN", u.group.Input)) ||
					!strings.Contains(err.Error(), "--adopt-offsets") {
					t.Errorf("got %v, want a refusal of %s", err, c.refused)
				}
			})
		}
	})
}

func TestAdoptedOffsetsAreKdedups(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		u := newUsed(t, brokers, false)
		u.commit(0, 3)
		u.commit(1, 8)
		u.fence(0, 3, u.group.Name)
		var said []string
		say := func(line string) { said = append(said, line) }
		for _, dryRun := range []bool{true, false} {
			if err := u.group.Check(t.Context(), u.client); err == nil {
				t.Error("accepted before they were adopted")
			}
			if err := u.group.Adopt(t.Context(), u.client, dryRun, say); err != nil {
				t.Fatal(err)
			}
		}
		if err := u.group.Check(t.Context(), u.client); err != nil {
			t.Error(err)
		}
		if len(said) != 2 || !strings.HasPrefix(said[0], "would adopt offset 8 of") ||
			!strings.HasPrefix(said[1], "adopted offset 8 of") {
			t.Errorf("said %q", said)
		}
		offsets, err := u.admin.FetchOffsets(t.Context(), u.group.Name)
		if at, _ := offsets.Lookup(u.group.Input, 1); err != nil || at.At != 8 {
			t.Errorf("the offset is %d now, %v", at.At, err)
		}
	})
}

func TestMembersThatAreNotKdedupsAreRefused(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		for name, protocol := range map[string][]kgo.Opt{
			"classic":  {kgo.Balancers(kgo.CooperativeStickyBalancer())},
			"consumer": {kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer())},
		} {
			t.Run(name, func(t *testing.T) {
				u := newUsed(t, brokers, false)
				c := &Client{kafka: u.client, admin: u.admin}
				join := func(clientID, topic string) (leave func()) {
					opts := append([]kgo.Opt{
						kgo.ClientID(clientID), kgo.ConsumerGroup(u.group.Name),
						kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
					}, protocol...)
					member := testkit.KafkaClient(t, brokers, opts...)
					polling := make(chan struct{})
					go func() {
						defer close(polling)
						for !member.PollFetches(t.Context()).IsClientClosed() {
							continue
						}
					}()
					testkit.Eventually(t, 30*time.Second, "a member", func() bool {
						active, err := c.HasMembers(t.Context(), u.group.Name)
						return active && err == nil
					})
					return func() { member.Close(); <-polling }
				}
				leave := join("billing", u.group.Input)
				testkit.Eventually(t, 30*time.Second, "a refusal", func() bool {
					err := u.group.Check(t.Context(), u.client)
					return err != nil && strings.Contains(err.Error(), `"billing" at `) &&
						strings.Contains(err.Error(), u.group.Name)
				})
				leave()
				for clientID, topic := range map[string]string{u.group.Name +
					"-one-0": u.group.Input, "billing": u.group.FenceTopic} {
					leave := join(clientID, topic)
					for range 10 {
						if err := u.group.Check(t.Context(), u.client); err != nil {
							t.Errorf("%s, which reads %s: %v", clientID, topic, err)
						}
					}
					leave()
				}
			})
		}
	})
}
