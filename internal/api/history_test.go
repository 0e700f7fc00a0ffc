package api

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/anishathalye/porcupine"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/api/kdedup/v1/kdedupv1connect"
)

type method int

const (
	judging method = iota
	looksUp
	releases
)

// question is one request about an ID; the caller's place is an offset, which is not 0.
type question struct {
	method method
	id     string
	offset int64
}

// heard is the answer. Lost: there was none, and the request may have its effect later, or never.
type heard struct {
	lost    bool
	verdict kdedupv1.Verdict
	owner   int64 // 0: nobody
}

// owners is the simplest API: an ID is free (0), or an offset owns it.
var owners = porcupine.Model{
	Partition: func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
		byID := make(map[string][]porcupine.Operation)
		for _, o := range all {
			id := o.Input.(question).id
			byID[id] = append(byID[id], o)
		}
		for _, part := range byID {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		owner, asks, hears := state.(int64), input.(question), output.(heard)
		switch asks.method {
		case releases:
			return true, int64(0)
		case looksUp:
			return hears.lost || hears.owner == owner, owner
		}
		want, next := kdedupv1.Verdict_VERDICT_DUPLICATE, owner
		switch owner {
		case 0:
			want, next = kdedupv1.Verdict_VERDICT_FIRST, asks.offset
		case asks.offset:
			want = kdedupv1.Verdict_VERDICT_MINE
		}
		return hears.lost || hears.verdict == want && hears.owner == next, next
	},
}

func (q question) ask(ctx context.Context, c kdedupv1connect.ClaimServiceClient) (heard, error) {
	switch q.method {
	case releases:
		_, err := c.Release(ctx, connect.NewRequest(
			&kdedupv1.ReleaseRequest{Scope: "orders", Id: q.id}))
		return heard{}, err
	case looksUp:
		r, err := c.Lookup(ctx, connect.NewRequest(
			&kdedupv1.LookupRequest{Scope: "orders", Id: q.id}))
		if err != nil {
			return heard{}, err
		}
		return heard{owner: r.Msg.GetClaim().GetOwner().GetRecord().GetOffset()}, nil
	}
	r, err := c.Judge(ctx, connect.NewRequest(of(&kdedupv1.Message{Id: q.id,
		Place: at(q.offset)})))
	if err != nil {
		return heard{}, err
	}
	j := r.Msg.GetJudgements()[0]
	return heard{verdict: j.GetVerdict(), owner: j.GetOwner().GetRecord().GetOffset()}, nil
}

// Callers give up, and the server is killed, in the middle of requests. What they hear is what one
// server would say that decides one request after the other.
func TestHistoriesThroughTheAPIAreLinearizableWhileTheServerIsKilled(t *testing.T) {
	const callers, requests, perID, kills = 6, 3000, 30, 4
	path := t.TempDir()
	process, at := startServer(t, path)
	defer func() { _ = process.Process.Kill(); _ = process.Wait() }()
	var url atomic.Value
	url.Store(at)
	var (
		next    atomic.Int64
		mu      sync.Mutex
		history []porcupine.Operation
		asking  sync.WaitGroup
	)
	begin := time.Now()
	for caller := range callers {
		client := clearText(t)
		asking.Go(func() {
			for n := next.Add(1); n <= requests; n = next.Add(1) {
				q := question{method: judging, id: fmt.Sprint("id-", n/perID),
					offset: rand.Int64N(4) + 1}
				switch rand.N(10) {
				case 0:
					q.method = releases
				case 1, 2:
					q.method = looksUp
				}
				patience := 5 * time.Second
				if rand.N(20) == 0 {
					patience = rand.N(10 * time.Millisecond)
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				call, server := time.Since(begin), url.Load().(string)
				answer, err := q.ask(ctx, kdedupv1connect.NewClaimServiceClient(client, server,
					connect.WithGRPC()))
				cancel()
				end := int64(time.Since(begin))
				if err != nil {
					answer, end = heard{lost: true}, math.MaxInt64
				}
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: caller, Input: q,
					Call: int64(call), Output: answer, Return: end})
				mu.Unlock()
				if err != nil && connect.CodeOf(err) == connect.CodeUnavailable {
					awaitOther(t, &url, server)
				}
			}
		})
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for kill := range kills {
		for next.Load() < int64(requests*(kill+1)/(kills+1)) {
			<-tick.C
		}
		process = killServer(t, process, path, &url)
	}
	asking.Wait()
	lost := 0
	for _, o := range history {
		if o.Output.(heard).lost {
			lost++
		}
	}
	t.Logf("%d of %d answers were lost", lost, requests)
	if lost == 0 {
		t.Error("no answer was lost: nothing was tested")
	}
	switch porcupine.CheckOperationsTimeout(owners, history, time.Minute) {
	case porcupine.Illegal:
		t.Error("no order of the requests explains the answers")
	case porcupine.Unknown:
		t.Error("the search took too long")
	}
}

// awaitOther waits for the server that comes after a killed one. It gives up after a while: the
// server may have refused the request, and live.
func awaitOther(t *testing.T, url *atomic.Value, than string) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for url.Load().(string) == than && ctx.Err() == nil {
		<-tick.C
	}
}

// The checker itself must find a claim that was forgotten.
func TestAForgottenClaimIsFoundInAHistory(t *testing.T) {
	first := heard{verdict: kdedupv1.Verdict_VERDICT_FIRST, owner: 1}
	second := heard{verdict: kdedupv1.Verdict_VERDICT_FIRST, owner: 2}
	history := []porcupine.Operation{
		{Input: question{id: "a", offset: 1}, Output: first, Call: 0, Return: 1},
		{ClientId: 1, Input: question{id: "a", offset: 2}, Output: second, Call: 2, Return: 3},
	}
	if porcupine.CheckOperations(owners, history) {
		t.Error("two owners of one ID were taken for one order")
	}
}
