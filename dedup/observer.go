package dedup

import "time"

// Observer hears what it takes to have claims decided. The goroutine that judges calls it.
type Observer interface {
	// Undecided: the store left it open who owns that many IDs. They will be claimed again.
	Undecided(claims int)
	// Again: what is undecided is claimed again.
	Again()
	// Ended: nothing waits for the store any more. It is called for each batch with claims.
	Ended()
	// Judged: the claims of a batch have these answers, that long after they were made. Some are
	// Undecided if Retry.GiveUpAfter has passed.
	Judged(answers []Answer, took time.Duration)
}

// unobserved is an Observer that nobody hears.
type unobserved struct{}

func (unobserved) Undecided(int)                  {}
func (unobserved) Again()                         {}
func (unobserved) Ended()                         {}
func (unobserved) Judged([]Answer, time.Duration) {}

// Fact is a number that only one type of store has.
type Fact struct {
	Name  string
	Value float64
	Unit  string // count or bytes
}

// FactsOf asks the store what it tells of itself.
func FactsOf(s Store) []Fact {
	if tells, does := Unwrapped(s).(interface{ Facts() []Fact }); does {
		return tells.Facts()
	}
	return nil
}

// Unwrapped is the store inside one that stands around it and has a method Unwrap. It may be able
// to do more than a Store must.
func Unwrapped(s Store) Store {
	for {
		around, is := s.(interface{ Unwrap() Store })
		if !is {
			return s
		}
		s = around.Unwrap()
	}
}
