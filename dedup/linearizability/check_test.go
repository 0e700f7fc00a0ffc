package linearizability_test

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// searchLimit is for one ID. Ten seconds of work take milliseconds.
const searchLimit = time.Minute

// check searches a linearization of each ID's operations.
func check(operations []*operation) error {
	var (
		histories = byID(operations)
		next      = make(chan []*operation)
		searches  sync.WaitGroup
		mu        sync.Mutex
		found     error
	)
	for range runtime.GOMAXPROCS(0) {
		searches.Go(func() {
			for history := range next {
				err := checkID(history)
				mu.Lock()
				found = cmp.Or(found, err)
				mu.Unlock()
			}
		})
	}
	for _, history := range histories {
		next <- history
	}
	close(next)
	searches.Wait()
	return found
}

// byID puts the operations of each ID into the order of their returns, the open ones last.
func byID(operations []*operation) map[int][]*operation {
	histories := make(map[int][]*operation)
	for _, o := range operations {
		histories[o.id] = append(histories[o.id], o)
	}
	for _, history := range histories {
		slices.SortStableFunc(history, func(a, b *operation) int {
			return cmp.Or(-cmp.Compare(min(a.result, done), min(b.result, done)),
				cmp.Compare(a.end, b.end))
		})
	}
	return histories
}

func checkID(history []*operation) error {
	switch porcupine.CheckOperationsTimeout(model, reduce(history), searchLimit) {
	case porcupine.Illegal:
		return &violation{shortest(history)}
	case porcupine.Unknown:
		return fmt.Errorf("no end of the search after %v: %d operations of id %d", searchLimit,
			len(history), history[0].id)
	}
	return nil
}

// shortest is the shortest beginning of a violation that is one.
func shortest(history []*operation) []*operation {
	low, high := 1, len(history)
	for low < high {
		middle := (low + high) / 2
		if porcupine.CheckOperationsTimeout(model, reduce(beginning(history, middle)),
			searchLimit) == porcupine.Illegal {
			high = middle
		} else {
			low = middle + 1
		}
	}
	part := prune(beginning(history, low))
	slices.SortFunc(part, func(a, b *operation) int { return cmp.Compare(a.call, b.call) })
	return part
}

// violation is a history that no order of its operations explains.
type violation struct{ history []*operation }

// Error shows the end, where the operation is that does not fit.
func (v *violation) Error() string {
	const most = 40
	lines := []string{fmt.Sprintf("id %d is not linearizable; the last of %d operations:",
		v.history[0].id, len(v.history))}
	for _, o := range v.history[max(0, len(v.history)-most):] {
		lines = append(lines, o.String())
	}
	return strings.Join(lines, "\n")
}
