package dedup

import "time"

// Observer hears what it takes to have claims decided. The goroutine that judges calls it.
type Observer interface {
	// Undecided: the store left it open who owns that many IDs. They will be claimed again.
	Undecided(claims int)
	// Again: what is undecided is claimed again.
	Again()
	// Unresolved: it is not known yet whether that many records have IDs. The Resolver will be
	// asked again.
	Unresolved(records int)
	// Ended: nothing waits for the store, or for the Resolver, any more. It is called for each
	// batch with claims.
	Ended()
	// Judged: the claims of a batch have these answers, that long after they were made. Some are
	// Undecided if Retry.GiveUpAfter has passed.
	Judged(answers []Answer, took time.Duration)
}

// unobserved is an Observer that nobody hears.
type unobserved struct{}

func (unobserved) Undecided(int)                  {}
func (unobserved) Again()                         {}
func (unobserved) Unresolved(int)                 {}
func (unobserved) Ended()                         {}
func (unobserved) Judged([]Answer, time.Duration) {}
