package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/brokers"
	"github.com/kdedup/kdedup/internal/pause"
)

// BrokerLimits finds out whether the brokers admit the settings of pipelines, before a lane meets
// their refusal again and again. It asks the coordinators of groups and transactions, each of which
// has limits of its own, and keeps what they have told.
type BrokerLimits struct {
	client   *kgo.Client
	versions *brokers.Versions           // nil: not asked yet
	values   map[int32]map[string]string // settings of brokers; empty for those that tell none
	others   map[int32]map[string]string // groups that are no consumer groups: their type
	admits   map[int32]time.Duration     // the longest transactions that brokers have admitted
}

// NewBrokerLimits asks the brokers that have the groups.
func NewBrokerLimits(client *kgo.Client) *BrokerLimits {
	return &BrokerLimits{client: client, values: make(map[int32]map[string]string),
		others: make(map[int32]map[string]string), admits: make(map[int32]time.Duration)}
}

// Check returns an error for each setting of an entry that its brokers never admit, which begins
// with the setting's name. Members are the transactional IDs of the lanes. What the brokers do not
// tell now they tell the lanes.
func (l *BrokerLimits) Check(ctx context.Context, t config.Topic, members []string) []error {
	ctx, cancel := context.WithTimeout(ctx, coordinatorPatience)
	defer cancel()
	var problems []error
	if broker, found := l.groupCoordinator(ctx, t.ConsumerGroup); found {
		problems = append(problems, l.otherType(ctx, t, broker), l.size(ctx, t, broker),
			l.member(ctx, t, broker))
	}
	if t.Delivery == config.DeliveryExactlyOnce {
		for _, member := range l.onePerCoordinator(ctx, members) {
			problems = append(problems, l.transaction(ctx, t, member))
		}
	}
	problems = slices.DeleteFunc(problems, func(err error) bool { return err == nil })
	return distinct(problems)
}

// distinct leaves out what several coordinators refuse in the same words.
func distinct(problems []error) (each []error) {
	for _, p := range problems {
		if !slices.ContainsFunc(each, func(e error) bool { return e.Error() == p.Error() }) {
			each = append(each, p)
		}
	}
	return each
}

// groupCoordinator waits until a new cluster has made the topic of the groups' offsets.
func (l *BrokerLimits) groupCoordinator(
	ctx context.Context, group string,
) (broker int32, found bool) {
	err := pause.Repeat(ctx, askAgain, kerr.IsRetriable, func() error {
		answer := kadm.NewClient(l.client).FindGroupCoordinators(ctx, group)[group]
		broker = answer.NodeID
		return answer.Err
	})
	return broker, err == nil
}

// memberAt is a lane's transactional ID and the broker that coordinates it.
type memberAt struct {
	name   string
	broker int32
}

// onePerCoordinator picks a member for each broker that coordinates some, when a new cluster has
// made the topic of the transactions.
func (l *BrokerLimits) onePerCoordinator(
	ctx context.Context, members []string,
) (picked []memberAt) {
	var found kadm.FindCoordinatorResponses
	_ = pause.Repeat(ctx, askAgain, kerr.IsRetriable, func() error {
		found = kadm.NewClient(l.client).FindTxnCoordinators(ctx, members...)
		return found.Error()
	})
	for _, c := range found.Sorted() {
		known := slices.ContainsFunc(picked, func(m memberAt) bool { return m.broker == c.NodeID })
		if c.Err == nil && !known {
			picked = append(picked, memberAt{c.Name, c.NodeID})
		}
	}
	return picked
}

// setting is empty where the broker does not tell it: the right to ask is one that kdedup does not
// need.
func (l *BrokerLimits) setting(ctx context.Context, broker int32, key string) string {
	values, asked := l.values[broker]
	if !asked {
		values = make(map[string]string)
		described, err := kadm.NewClient(l.client).DescribeBrokerConfigs(ctx, broker)
		for _, d := range described {
			for _, c := range d.Configs {
				values[c.Key] = c.MaybeValue()
			}
		}
		if err == nil || !kerr.IsRetriable(err) {
			l.values[broker] = values
		}
	}
	return values[key]
}

// number is false for a setting that is not known.
func (l *BrokerLimits) number(ctx context.Context, broker int32, key string) (int64, bool) {
	n, err := strconv.ParseInt(l.setting(ctx, broker, key), 10, 64)
	return n, err == nil
}

// unseen tells why a limit has no number.
const unseen = "whose value this user may not see (it takes DescribeConfigs on the cluster)"

const (
	mostTransaction = "transaction.max.timeout.ms"
	leastSession    = "group.min.session.timeout.ms"
	mostSession     = "group.max.session.timeout.ms"
)

// transaction refuses a timeout that the coordinator of a lane's transactions does not admit.
func (l *BrokerLimits) transaction(ctx context.Context, t config.Topic, m memberAt) error {
	if most, known := l.number(ctx, m.broker, mostTransaction); known {
		limit := time.Duration(most) * time.Millisecond
		if t.TransactionTimeout <= limit {
			return nil
		}
		return fmt.Errorf("transaction_timeout: must be at most %s (%s of broker %d), got %s",
			limit, mostTransaction, m.broker, t.TransactionTimeout)
	}
	if t.TransactionTimeout <= l.admits[m.broker] || !l.asksAsNobody(ctx) {
		return nil
	}
	err := initOfNobody(ctx, l.client, m.name, t.TransactionTimeout)
	if errors.Is(err, kerr.InvalidTransactionTimeout) {
		return fmt.Errorf("transaction_timeout: broker %d refuses %s (%w): it is above %s, %s",
			m.broker, t.TransactionTimeout, err, mostTransaction, unseen)
	}
	if err == nil || errors.Is(err, errNotNobody) {
		l.admits[m.broker] = t.TransactionTimeout
	}
	return nil
}

// asksAsNobody reports whether the brokers tell nobody from a lane. InitProducerID says who asks
// since version 3, of Kafka 2.5; an earlier one would fence the lane.
func (l *BrokerLimits) asksAsNobody(ctx context.Context) bool {
	if l.versions == nil {
		versions, err := brokers.Ask(ctx, l.client)
		if err != nil {
			return false
		}
		l.versions = &versions
	}
	return l.versions.Answer(kmsg.InitProducerID, 3)
}

// session tells which of the two limits a session_timeout breaks that a broker refuses.
func (l *BrokerLimits) session(
	ctx context.Context, t config.Topic, broker int32, refusal error,
) error {
	is := t.SessionTimeout
	if n, known := l.number(ctx, broker, leastSession); known && is.Milliseconds() < n {
		return fmt.Errorf("session_timeout: must be at least %s (%s of broker %d), got %s",
			time.Duration(n)*time.Millisecond, leastSession, broker, is)
	}
	if n, known := l.number(ctx, broker, mostSession); known && is.Milliseconds() > n {
		return fmt.Errorf("session_timeout: must be at most %s (%s of broker %d), got %s",
			time.Duration(n)*time.Millisecond, mostSession, broker, is)
	}
	return fmt.Errorf("session_timeout: broker %d refuses %s (%w): it is below %s or above %s, %s",
		broker, is, refusal, leastSession, mostSession, unseen)
}

// size refuses more lanes than a group may have members.
func (l *BrokerLimits) size(ctx context.Context, t config.Topic, broker int32) error {
	key := "group.max.size"
	if t.GroupProtocol == config.ProtocolConsumer {
		key = "group.consumer.max.size"
	}
	if most, known := l.number(ctx, broker, key); known && int64(t.Lanes) > most {
		return fmt.Errorf("lanes: must be at most %d (%s of broker %d), got %d: each is a member "+
			"of the consumer group", most, key, broker, t.Lanes)
	}
	return nil
}
