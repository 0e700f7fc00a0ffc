package dedup_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

func TestAWatchTellsWhatTheServerIsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type answer struct{ problem, err error }
		var now atomic.Pointer[answer]
		w := dedup.NewWatch(time.Minute, func(context.Context) (error, error) {
			return now.Load().problem, now.Load().err
		})
		defer w.Close()
		evicts := errors.New("it evicts")
		for _, step := range []struct {
			what         string
			problem, err error
			want         error
		}{
			{"all is well", nil, nil, nil},
			{"somebody changes it", evicts, nil, evicts},
			{"it does not answer", nil, errors.New("down"), evicts},
			{"somebody changes it back", nil, nil, nil},
			{"it does not answer then", evicts, errors.New("down"), nil},
		} {
			now.Store(&answer{step.problem, step.err})
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := w.Err(); !errors.Is(got, step.want) || (got == nil) != (step.want == nil) {
				t.Errorf("%s: %v, want %v", step.what, got, step.want)
			}
		}
	})
}

func TestAQuestionOfAWatchEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan struct{})
		w := dedup.NewWatch(time.Minute, func(ctx context.Context) (error, error) {
			close(asked)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		<-asked
		began := time.Now()
		w.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("Close took %v", took)
		}
	})
}
