package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// What a killed server had answered stands, at whatever moment the kill came, and the store finds
// the server again by itself.
func TestAKilledServerForgetsNoAnsweredClaim(t *testing.T) {
	server := startServer(t, servers.PostgresOptions{Dir: t.TempDir()})
	options := optionsFor(t, server.Addr())
	create(t, options)
	options.Timeout = 5 * time.Second
	store := open(t, options)
	var lanes [3]killedLane
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for i := range lanes {
		wg.Go(func() { lanes[i].claim(t, store, i, stop) })
	}
	for kill := range 3 {
		before := lanes[0].count()
		testkit.Eventually(t, patience, "progress", func() bool {
			return lanes[0].count() > before+5*kill
		})
		server.Kill()
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	for i := range lanes {
		if lanes[i].lost == 0 {
			t.Errorf("lane %d: no kill hit a claim", i)
		}
		for batch, answered := range lanes[i].answered {
			got, err := store.Claim(t.Context(), scope, laneClaims(i, batch, int32(100+i)))
			if err != nil {
				t.Fatal(err)
			}
			for n := range got {
				if answered[n].Outcome != dedup.Undecided &&
					(got[n].Outcome != dedup.Exists || got[n].Owner != answered[n].Owner) {
					t.Fatalf("lane %d, batch %d: %+v was answered, now %+v", i, batch, answered[n],
						got[n])
				}
			}
		}
	}
}

const laneBatch = 500

// killedLane claims batch after batch and keeps what it was answered.
type killedLane struct {
	mu       sync.Mutex
	answered [][]dedup.Answer
	lost     int // calls with an error
}

// laneClaims are a third known by another lane, so that some answers are Exists.
func laneClaims(lane, batch int, partition int32) []dedup.Claim {
	from := (batch*3 + lane) * laneBatch
	return claims(max(0, from-laneBatch/3), laneBatch, partition)
}

func (l *killedLane) claim(t *testing.T, store dedup.Store, lane int, stop <-chan struct{}) {
	for batch := 0; ; batch++ {
		select {
		case <-stop:
			return
		default:
		}
		answers, err := store.Claim(t.Context(), scope, laneClaims(lane, batch, int32(lane)))
		l.mu.Lock()
		if err != nil {
			l.lost++
			batch-- // once more
		} else {
			l.answered = append(l.answered, answers)
		}
		l.mu.Unlock()
	}
}

func (l *killedLane) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.answered)
}
