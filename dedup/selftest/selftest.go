// Package selftest asks a store for what kdedup relies on, as `kdedup setup` does with the store of
// a configuration. The contract is in dedup/storetest, for the tests of a store; this is the part
// of it that tells a server that cannot keep the contract, in seconds and on a store that is in
// use.
package selftest

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/pause"
)

// Names of the steps, in their order.
const (
	First    = "a first claim"
	Again    = "the same record again, as after a lost answer"
	Other    = "another record with this ID"
	Conflict = "another record with other content"
	Batch    = "a batch with one known ID"
	Repeat   = "the batch once more"
	LookUp   = "a look-up"
	Expiry   = "a claim at the end of its ttl"
	Renewal  = "copies beyond the end of its ttl"
	CleanUp  = "clean-up"
)

// Step is one thing that was asked of the store.
type Step struct {
	Name     string
	Expected string
	Got      string // equal to Expected, or begins with it, if the step is passed
	Passed   bool
	Took     time.Duration
}

const (
	attempts = 5
	between  = time.Second // two attempts

	ttl       = time.Minute // of all claims but one, should nobody clean up
	expiring  = time.Second // the shortest ttl of the contract
	expiresIn = 15 * time.Second
	renewing  = 3 * time.Second // the ttl that copies put off, for stores that count in seconds
	tick      = 50 * time.Millisecond
	cleaning  = 10 * time.Second
)

// Scope is what the names of its scopes begin with.
const Scope = "kdedup-self-test-"

// Run returns the steps that were taken; the last has failed, or all are passed. It claims six IDs,
// or seven, in a scope of its own of the consumer group, which it does not register, and releases
// them; should it be killed, they end within a minute. A step that gets no answer is no verdict:
// then all is asked again in another scope, five times at most. It takes a second or two on a store
// that keeps the contract, and ends with ctx. With sliding it asks as well whether copies renew,
// which takes five seconds more.
func Run(ctx context.Context, store dedup.Store, group string, sliding bool) []Step {
	for attempt := 1; ; attempt++ {
		s := newSubject(store, group)
		s.sliding = sliding
		steps, answered := s.run(ctx)
		if answered || attempt == attempts || !pause.For(ctx, between) {
			return steps
		}
	}
}

// subject is the store, in a scope that nobody else uses.
type subject struct {
	store   dedup.Store
	scope   dedup.Scope
	claimed []dedup.ID
	sliding bool // copies are asked to renew
}

func newSubject(store dedup.Store, group string) *subject {
	return &subject{store: store, scope: dedup.Scope{
		ConsumerGroup: group, Name: Scope + rand.Text(), TTL: ttl, Buckets: 1,
		Extractor: "self-test",
	}}
}

// run takes the steps up to the first that fails. Answered is false if the last step got no answer.
func (s *subject) run(ctx context.Context) (steps []Step, answered bool) {
	for _, step := range s.steps() {
		start := time.Now()
		got, err := step.ask(ctx)
		taken := Step{Name: step.name, Expected: step.expected, Got: got.text, Passed: err == nil &&
			got.passed, Took: time.Since(start)}
		if err != nil {
			taken.Got = err.Error()
		}
		if steps = append(steps, taken); !taken.Passed {
			_ = s.release(ctx) // what cannot be released ends by itself
			return steps, err == nil
		}
	}
	return steps, true
}

// claim returns an answer for each claim, or the reason why one has none.
func (s *subject) claim(
	ctx context.Context, scope dedup.Scope, claims ...dedup.Claim,
) ([]dedup.Answer, error) {
	for _, c := range claims {
		if !slices.Contains(s.claimed, c.ID) {
			s.claimed = append(s.claimed, c.ID)
		}
	}
	answers, err := s.store.Claim(ctx, scope, claims)
	for _, a := range answers {
		if a.Outcome == dedup.Undecided && err == nil {
			return nil, errors.New("a claim is undecided, and no error says why")
		}
	}
	return answers, err
}

// release frees all that was claimed, also after ctx has ended.
func (s *subject) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleaning)
	defer cancel()
	for _, id := range s.claimed {
		if err := s.store.Release(ctx, s.scope, id); err != nil {
			return err
		}
	}
	return nil
}
