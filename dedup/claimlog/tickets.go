package claimlog

import (
	"math/rand/v2"
	"sync"
	"time"
)

// tickets are for requests that undo claims. Each is for one request, which must come soon after
// the ticket was given out, by the clocks of the process that gave it: a request that waited in a
// process that was stopped would undo what was claimed since.
type tickets struct {
	mu  sync.Mutex
	out map[int64]ticketTime
}

// ticketTime is a time by a clock that only goes forward, and may stand still while the machine
// does, and by one that may be set.
type ticketTime struct{ steady, wall time.Time }

// ticketHolds is how long a ticket is good.
const ticketHolds = 5 * time.Second

func (t ticketTime) holds(wall time.Time) bool {
	jump := wall.Sub(t.wall)
	return time.Since(t.steady) <= ticketHolds && jump <= ticketHolds && jump >= -ticketHolds
}

func (t *tickets) issue(wall time.Time) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.out == nil {
		t.out = make(map[int64]ticketTime)
	}
	for ticket, at := range t.out {
		if !at.holds(wall) {
			delete(t.out, ticket)
		}
	}
	ticket := rand.Int64()
	t.out[ticket] = ticketTime{time.Now(), wall}
	return ticket
}

// take reports whether a ticket is good, for once.
func (t *tickets) take(ticket int64, wall time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, is := t.out[ticket]
	delete(t.out, ticket)
	return is && at.holds(wall)
}
