package pipeline_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/testkit"
)

// site is a rig with its hands on the brokers and on the network in front of them.
type site struct {
	*rig
	cluster *kfake.Cluster
	network *network // between the pipeline and the brokers; the test's own client goes past it
}

// event runs a test with both deliveries, each on brokers of its own.
func event(t *testing.T, brokers int, test func(t *testing.T, s *site), opts ...kfake.Opt) {
	for _, delivery := range []string{"exactly_once", "at_least_once"} {
		t.Run(delivery, func(t *testing.T) {
			t.Parallel()
			cluster, addresses := testkit.FakeKafka(t,
				append(slices.Clip(opts), kfake.NumBrokers(brokers))...)
			s := &site{rig: newRig(t, addresses), cluster: cluster, network: &network{}}
			s.transactional = delivery == "exactly_once"
			s.connection = append(s.connection, kgo.Dialer(s.network.dial),
				kgo.RetryBackoffFn(soon), kgo.MetadataMinAge(20*time.Millisecond))
			test(t, s)
		})
	}
}

// soon is the client's pause between two tries. By default that grows to seconds, and the metadata
// that many a repeat asks for again is kept for seconds, too.
func soon(int) time.Duration { return 10 * time.Millisecond }

// waitBalanced waits until each of the members has its share of the partitions.
func (s *site) waitBalanced(members int) {
	s.t.Helper()
	testkit.Eventually(s.t, 30*time.Second, fmt.Sprintf("%d members with equal shares", members),
		func() bool {
			info := s.cluster.GroupInfo(group)
			return info != nil && info.State == "Stable" && len(info.Members) == members &&
				!slices.ContainsFunc(info.Members, func(m kfake.GroupMember) bool {
					return m.NumAssigned() != partitions/members
				})
		})
}

// finish waits for the whole input and checks the promise, without repeats in either delivery.
func (r *rig) finish(n int) {
	r.t.Helper()
	r.waitCommitted(int64(n))
	r.checkClean(true)
}

func (r *rig) failures() float64 { return r.counter("kdedup_lane_failures_total") }

// waitLogged waits for a line with all of the words.
func (r *rig) waitLogged(words ...string) {
	r.t.Helper()
	testkit.Eventually(r.t, 30*time.Second, "a log line with "+join(words), func() bool {
		return len(r.logs.with(words...)) > 0
	})
}

func join(words []string) (text string) {
	for _, word := range words {
		text += "»" + word + "« "
	}
	return text
}

// network passes everything on, until a rule tampers with the answers to a kind of request. The
// broker has done its work by then.
type network struct {
	mu    sync.Mutex
	rules map[int16]func(answer []byte) error
}

// tamper sets the rule for a kind of request; nil takes it away. The rule may change the answer's
// bytes, without the length in front. With an error the answer is lost and the connection closed.
func (n *network) tamper(key kmsg.Key, rule func(answer []byte) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rules == nil {
		n.rules = make(map[int16]func([]byte) error)
	}
	n.rules[int16(key)] = rule
}

func (n *network) apply(key int16, answer []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if rule := n.rules[key]; rule != nil {
		return rule(answer)
	}
	return nil
}

// lost is a rule that loses the first n answers and counts them.
func lost(n int, count *int) func([]byte) error {
	return func([]byte) error {
		if *count >= n {
			return nil
		}
		*count++
		return io.EOF
	}
}

// count reads what a rule has counted.
func (n *network) count(counter *int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return *counter
}

func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, kind, address)
	if err != nil {
		return nil, err
	}
	return &tapped{Conn: conn, network: n}, nil
}

// tapped is a connection that knows which request each answer belongs to: a broker answers in
// order, and the client writes each request at once. Reads are the client's one reading
// goroutine's.
type tapped struct {
	net.Conn
	network *network
	answer  []byte // read from the broker, not yet by the client

	mu   sync.Mutex
	keys []int16 // of the requests that wait for their answer
}

// Write implements net.Conn. The request's key comes right after its length.
func (t *tapped) Write(request []byte) (int, error) {
	t.mu.Lock()
	t.keys = append(t.keys, int16(binary.BigEndian.Uint16(request[4:])))
	t.mu.Unlock()
	return t.Conn.Write(request)
}

// Read implements net.Conn.
func (t *tapped) Read(p []byte) (int, error) {
	if len(t.answer) == 0 {
		if err := t.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.answer)
	t.answer = t.answer[n:]
	return n, nil
}

func (t *tapped) next() error {
	var length [4]byte
	if _, err := io.ReadFull(t.Conn, length[:]); err != nil {
		return err
	}
	answer := make([]byte, 4+binary.BigEndian.Uint32(length[:]))
	copy(answer, length[:])
	if _, err := io.ReadFull(t.Conn, answer[4:]); err != nil {
		return err
	}
	t.mu.Lock()
	key := t.keys[0]
	t.keys = t.keys[1:]
	t.mu.Unlock()
	if err := t.network.apply(key, answer[4:]); err != nil {
		_ = t.Conn.Close()
		return err
	}
	t.answer = answer
	return nil
}

// throttles counts how often a broker asked the client to pause.
type throttles struct{ seen atomic.Int32 }

func (c *throttles) hook() kgo.Opt { return kgo.WithHooks(c) }

// OnBrokerThrottle implements kgo.HookBrokerThrottle.
func (c *throttles) OnBrokerThrottle(_ kgo.BrokerMetadata, pause time.Duration, _ bool) {
	if pause == 150*time.Millisecond {
		c.seen.Add(1)
	}
}
