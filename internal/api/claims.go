package api

import (
	"context"
	"log/slog"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/api/kdedup/v1/kdedupv1connect"
	"github.com/kdedup/kdedup/dedup"
)

// claims is the ClaimService.
type claims struct {
	access
	store   dedup.Store
	batch   int // the most messages of one request
	metrics *Metrics
	log     *slog.Logger

	judges sync.Map // by scope: *judges
}

var _ kdedupv1connect.ClaimServiceHandler = (*claims)(nil)

func newClaims(o Options) *claims {
	return &claims{access: access{o.Scopes, o.Kinds.Claims}, store: o.Store,
		batch: o.Limits.Batch, metrics: o.Metrics, log: o.Logger}
}

// Judge implements ClaimService.
func (c *claims) Judge(
	ctx context.Context, r *connect.Request[kdedupv1.JudgeRequest],
) (*connect.Response[kdedupv1.JudgeResponse], error) {
	scope, err := c.scope(ctx, r.Msg.GetScope(), len(r.Msg.GetMessages()))
	if err != nil {
		return nil, err
	}
	if n := len(r.Msg.GetMessages()); n > c.batch {
		return nil, invalid("messages: must be at most %d (api.max_batch), got %d", c.batch, n)
	}
	judges := c.judgesOf(scope)
	judge := judges.get()
	defer judges.put(judge)
	if err := judge.read(r.Msg.GetMessages()); err != nil {
		return nil, err
	}
	judgements, err := judge.deduper.Judge(ctx, judge.messages)
	if err != nil {
		return nil, unanswered(ctx, err)
	}
	verdicts := &askedOf(ctx).Verdicts
	for i := range judgements {
		verdicts[judgements[i].Verdict]++
	}
	c.metrics.judged(scope.Name, verdicts)
	return connect.NewResponse(judge.answer(r.Msg.GetMessages(), judgements)), nil
}

func (c *claims) judgesOf(scope dedup.Scope) *judges {
	if all, known := c.judges.Load(scope); known {
		return all.(*judges)
	}
	all, _ := c.judges.LoadOrStore(scope, newJudges(scope, c.store, c.log))
	return all.(*judges)
}

// Lookup implements ClaimService.
func (c *claims) Lookup(
	ctx context.Context, r *connect.Request[kdedupv1.LookupRequest],
) (*connect.Response[kdedupv1.LookupResponse], error) {
	scope, err := c.scope(ctx, r.Msg.GetScope(), 1)
	if err != nil {
		return nil, err
	}
	id, err := idOf("", r.Msg.GetId(), r.Msg.GetIdBytes())
	if err != nil {
		return nil, err
	}
	answer, err := c.store.Lookup(ctx, scope, id)
	if err != nil {
		return nil, unanswered(ctx, err)
	}
	response := &kdedupv1.LookupResponse{}
	if answer.Outcome != dedup.Undecided {
		response.Claim = &kdedupv1.Claim{Owner: new(topics).ownerOf(new(owned), answer.Owner, nil),
			Fingerprint: fingerprintBytes(answer.Fingerprint),
			ClaimedAt:   timestamppb.New(answer.ClaimedAt)}
	}
	return connect.NewResponse(response), nil
}

// Release implements ClaimService.
func (c *claims) Release(
	ctx context.Context, r *connect.Request[kdedupv1.ReleaseRequest],
) (*connect.Response[kdedupv1.ReleaseResponse], error) {
	scope, err := c.scope(ctx, r.Msg.GetScope(), 1)
	if err != nil {
		return nil, err
	}
	id, err := idOf("", r.Msg.GetId(), r.Msg.GetIdBytes())
	if err != nil {
		return nil, err
	}
	if err := c.store.Release(ctx, scope, id); err != nil {
		return nil, unanswered(ctx, err)
	}
	return connect.NewResponse(&kdedupv1.ReleaseResponse{}), nil
}
