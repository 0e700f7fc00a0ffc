package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/timestamppb"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/api/kdedup/v1/kdedupv1connect"
	"github.com/kdedup/kdedup/dedup"
)

var testLimits = Limits{Bytes: 64 << 20, Batch: 100_000, Requests: 10_000, Wait: time.Minute}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// serve runs a server until the test ends.
func serve(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Limits == (Limits{}) {
		o.Limits = testLimits
	}
	if o.Logger == nil {
		o.Logger = quiet()
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) error { return nil }
	}
	o.Metrics = NewMetrics(prometheus.NewRegistry())
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// clearText is an HTTP/2 client without encryption, as gRPC wants one.
func clearText(t testing.TB) *http.Client {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols,
		DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func clientOf(
	t testing.TB, s *Server, options ...connect.ClientOption,
) kdedupv1connect.ClaimServiceClient {
	return kdedupv1connect.NewClaimServiceClient(clearText(t), s.URL(), options...)
}

// protocols are the doors of the one API.
var protocols = map[string][]connect.ClientOption{
	"gRPC":     {connect.WithGRPC()},
	"gRPC-Web": {connect.WithGRPCWeb()},
	"JSON":     {connect.WithProtoJSON()},
}

// named are the scopes that a test has told, by names of their own.
type named struct {
	mu    sync.Mutex
	known map[string]dedup.Scope
}

func (n *named) find(name string) (dedup.Scope, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	scope, known := n.known[name]
	return scope, known
}

// name gives each set of settings a name.
func (n *named) name(scope dedup.Scope) string {
	name := fmt.Sprintf("%+q", fmt.Sprint(scope))
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = make(map[string]dedup.Scope)
	}
	n.known[name] = scope
	return name
}

// remote is a store whose claims go through the API, and everything else to the store behind it:
// callers register no scopes, and move no claims.
type remote struct {
	behind
	scopes *named
	client kdedupv1connect.ClaimServiceClient
	told   sync.Map // the fingerprints that were claimed with, by scope, ID and owner
}

// toldKey leaves out the settings of the scope, which may differ between calls.
type toldKey struct {
	group, name string
	id          dedup.ID
	owner       dedup.Coordinates
}

func keyTold(scope dedup.Scope, id dedup.ID, owner dedup.Coordinates) toldKey {
	return toldKey{scope.ConsumerGroup, scope.Name, id, owner}
}

// behind is what all stores can do.
type behind interface {
	dedup.Store
	dedup.Mover
	dedup.Amender
}

func throughAPI(t testing.TB, store behind, options ...connect.ClientOption) *remote {
	t.Helper()
	scopes := &named{}
	server := serve(t, Options{Store: store, Scopes: scopes.find})
	return &remote{behind: store, scopes: scopes, client: clientOf(t, server, options...)}
}

// Claim judges. A claim with a copy becomes two messages.
func (r *remote) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	request := &kdedupv1.JudgeRequest{Scope: r.scopes.name(scope)}
	var at []int
	for _, c := range claims {
		r.told.Store(keyTold(scope, c.ID, c.Owner), c.Fingerprint)
		at = append(at, len(request.Messages))
		request.Messages = append(request.Messages, messageFor(c))
		if c.Copied {
			copied := c
			copied.Owner.Offset++
			request.Messages = append(request.Messages, messageFor(copied))
		}
	}
	answers := make([]dedup.Answer, len(claims))
	response, err := r.client.Judge(ctx, connect.NewRequest(request))
	if err != nil {
		return answers, asContext(err)
	}
	for i, c := range claims {
		judgement := response.Msg.GetJudgements()[at[i]]
		answers[i] = dedup.Answer{Outcome: dedup.Exists, Owner: coordinatesOf(judgement.GetOwner()),
			Fingerprint: c.Fingerprint, ClaimedAt: judgement.GetClaimedAt().AsTime().Local()}
		switch judgement.GetVerdict() {
		case kdedupv1.Verdict_VERDICT_FIRST:
			answers[i].Outcome = dedup.Applied
		case kdedupv1.Verdict_VERDICT_DUPLICATE, kdedupv1.Verdict_VERDICT_CONFLICT:
			answers[i].Fingerprint, err = r.fingerprint(ctx, scope, c.ID, answers[i].Owner)
			if err != nil {
				return make([]dedup.Answer, len(claims)), err
			}
		}
	}
	return answers, nil
}

// fingerprint is that of an owner, which a judgement does not tell, and which may have gone since.
func (r *remote) fingerprint(
	ctx context.Context, scope dedup.Scope, id dedup.ID, owner dedup.Coordinates,
) (dedup.Fingerprint, error) {
	if claimed, told := r.told.Load(keyTold(scope, id, owner)); told {
		return claimed.(dedup.Fingerprint), nil
	}
	answer, err := r.Lookup(ctx, scope, id)
	return answer.Fingerprint, err
}

func (r *remote) Lookup(
	ctx context.Context, scope dedup.Scope, id dedup.ID,
) (dedup.Answer, error) {
	response, err := r.client.Lookup(ctx, connect.NewRequest(&kdedupv1.LookupRequest{
		Scope: r.scopes.name(scope), IdBytes: []byte(id)}))
	if err != nil || response.Msg.GetClaim() == nil {
		return dedup.Answer{}, asContext(err)
	}
	claim := response.Msg.GetClaim()
	answer := dedup.Answer{Outcome: dedup.Exists, Owner: coordinatesOf(claim.GetOwner()),
		ClaimedAt: claim.GetClaimedAt().AsTime().Local()}
	copy(answer.Fingerprint[:], claim.GetFingerprint())
	return answer, nil
}

func (r *remote) Release(ctx context.Context, scope dedup.Scope, id dedup.ID) error {
	_, err := r.client.Release(ctx, connect.NewRequest(&kdedupv1.ReleaseRequest{
		Scope: r.scopes.name(scope), IdBytes: []byte(id)}))
	return asContext(err)
}

func messageFor(c dedup.Claim) *kdedupv1.Message {
	m := &kdedupv1.Message{IdBytes: []byte(c.ID), Place: recordOf(c.Owner)}
	if c.Fingerprint != (dedup.Fingerprint{}) {
		m.Fingerprint = c.Fingerprint[:]
	}
	if !c.After.IsZero() {
		m.SettledUntil = timestamppb.New(c.After)
	}
	return m
}

// noTopic stands for the ID of no topic, which a caller cannot tell.
var noTopic = [16]byte{0: 'n', 1: 'o', 2: 'n', 3: 'e'}

func recordOf(c dedup.Coordinates) *kdedupv1.Place {
	if c.TopicID == ([16]byte{}) {
		c.TopicID = noTopic
	}
	return &kdedupv1.Place{Place: &kdedupv1.Place_Record{Record: &kdedupv1.Record{
		TopicId: c.TopicID[:], Partition: c.Partition, Offset: c.Offset,
		LeaderEpoch: &c.LeaderEpoch}}}
}

func coordinatesOf(o *kdedupv1.Owner) (c dedup.Coordinates) {
	if o.GetByHand() {
		return byHand
	}
	record := o.GetRecord()
	copy(c.TopicID[:], record.GetTopicId())
	if c.TopicID == noTopic {
		c.TopicID = [16]byte{}
	}
	c.Partition, c.Offset, c.LeaderEpoch = record.GetPartition(), record.GetOffset(),
		record.GetLeaderEpoch()
	return c
}

// asContext makes the error of an ended context one again.
func asContext(err error) error {
	switch connect.CodeOf(err) {
	case connect.CodeCanceled:
		return errors.Join(context.Canceled, err)
	case connect.CodeDeadlineExceeded:
		return errors.Join(context.DeadlineExceeded, err)
	}
	return err
}
