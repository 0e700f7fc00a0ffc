package torture

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/pause"
	"github.com/kdedup/kdedup/lab/workload"
)

// turns are the parts of the production: one for each kill, and one behind the last. A kill of a
// process that does nothing would prove nothing, and a group whose member was killed may do nothing
// for a session timeout. So half of a turn's records come, the turn waits until the command has
// worked on all their partitions, and the kill is among the other half. The next turn begins when
// the process is up again. It belongs to the goroutine that produces.
type turns struct {
	plan    Plan
	admin   *kadm.Client // of the clean topic's cluster
	workers []*worker
	random  *rand.Rand
	length  time.Duration // of a turn that is not held up
	records int           // of a turn; the last one has what is left, too
	longest time.Duration // that the command may do nothing

	place    int // of the next record
	messages int // that were produced
	turn     int
	begun    time.Time       // when this half of the turn was
	killAt   int             // the record of the turn before which a process is killed, or -1
	up       chan struct{}   // closed when the process that was killed last is up again
	sizes    map[int32]int64 // of the clean topic's partitions, at the begin of the turn
	news     map[int32]bool  // the partitions with new messages of the turn

	atRest int // kills while the command did nothing
}

const (
	longestDown = 3 * time.Second
	// longestAfter is how long behind a record a kill may come. Within this time some commands have
	// forwarded the record, and others have it in flight.
	longestAfter = 100 * time.Millisecond
	// fewestInTurn bounds the number of records below, so that a kill is somewhere.
	fewestInTurn = 10
	lookAgain    = 100 * time.Millisecond
	mostAhead    = 5 * time.Millisecond // of the rate
)

func newTurns(p Plan, admin *kadm.Client, workers []*worker) *turns {
	n := p.Kills + 1
	return &turns{plan: p, admin: admin, workers: workers, turn: -1, killAt: -1,
		random: rand.New(rand.NewPCG(p.Seed, 1)), length: p.During / time.Duration(n),
		records: p.Records.Records / n, longest: longestJoin}
}

// before returns when the record is to be produced.
func (t *turns) before(ctx context.Context, r *kgo.Record) error {
	turn := min(t.place/t.records, t.plan.Kills)
	at := t.place - turn*t.records
	t.place++
	if turn != t.turn {
		t.turn = turn
		if err := t.begin(ctx); err != nil {
			return err
		}
	}
	if at == t.records/2 && t.killAt >= 0 {
		if err := t.waitForWork(ctx); err != nil {
			return err
		}
		t.begun = time.Now()
	}
	if at == t.killAt {
		if err := t.kill(ctx); err != nil {
			return err
		}
	}
	if message := workload.MessageOf(r); message >= t.messages {
		t.messages = message + 1
		t.news[r.Partition] = true
	}
	t.pace(ctx, at)
	return ctx.Err()
}

func (t *turns) begin(ctx context.Context) (err error) {
	if t.up != nil {
		select {
		case <-t.up:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	t.news, t.begun = make(map[int32]bool), time.Now()
	t.killAt = -1
	if t.turn < t.plan.Kills {
		t.killAt = t.records/2 + t.random.IntN(t.records-t.records/2)
	}
	t.sizes, err = ends(ctx, t.admin, t.plan.Clean)
	return err
}

// pace lets the records of every other turn come at once: there a kill meets a process with much in
// flight. Those of the others come at one rate.
func (t *turns) pace(ctx context.Context, at int) {
	if t.turn%2 == 1 {
		return
	}
	if t.killAt >= 0 && at >= t.records/2 {
		at -= t.records / 2
	}
	due := t.begun.Add(time.Duration(float64(t.length) * float64(at) / float64(t.records)))
	if ahead := time.Until(due); ahead > mostAhead {
		pause.For(ctx, ahead)
	}
}

// waitForWork returns when the clean topic has grown on as many partitions as have new messages,
// since all processes are up. So all partitions are assigned again.
func (t *turns) waitForWork(ctx context.Context) error {
	begun := time.Now()
	for ; ; pause.For(ctx, lookAgain) {
		now, err := ends(ctx, t.admin, t.plan.Clean)
		if err != nil {
			return err
		}
		grown := 0
		for partition, size := range now {
			if size > t.sizes[partition] {
				grown++
			}
		}
		waited := time.Since(begun)
		switch {
		case grown >= len(t.news):
			if waited > time.Second {
				t.plan.Step("%s grows on all partitions, %v after half of the records of turn %d",
					t.plan.Clean, waited.Round(time.Millisecond), t.turn+1)
			}
			return nil
		case waited > t.longest:
			t.atRest++
			t.plan.Step("%s has grown on %d partitions within %v, and there are new messages on %d: "+
				"a process is killed nevertheless", t.plan.Clean, grown, t.longest, len(t.news))
			return nil
		}
	}
}

func (t *turns) kill(ctx context.Context) error {
	t.up = make(chan struct{})
	order := kill{
		after: time.Duration(t.random.Int64N(int64(longestAfter))),
		down:  time.Duration(t.random.Int64N(int64(longestDown))),
		up:    t.up,
	}
	select {
	case t.workers[t.random.IntN(len(t.workers))].kills <- order:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
