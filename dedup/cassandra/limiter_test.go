package cassandra

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func mustAcquire(t *testing.T, l *limiter) int {
	t.Helper()
	epoch, err := l.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return epoch
}

func wantLimit(t *testing.T, l *limiter, limit int, inUse int) {
	t.Helper()
	if got, used := l.current(); int(got) != limit || used != inUse {
		t.Errorf("limit %v with %d in use, want %d with %d", got, used, limit, inUse)
	}
}

func TestLimiterCountsOneOverloadOfManyRequestsOnce(t *testing.T) {
	l := newLimiter(16)
	var epochs []int
	for range 16 {
		epochs = append(epochs, mustAcquire(t, l))
	}
	for _, epoch := range epochs {
		l.overloaded(epoch)
	}
	wantLimit(t, l, 8, 0)
	l.overloaded(mustAcquire(t, l))
	wantLimit(t, l, 4, 0)
}

func TestLimiterStaysWithinItsBounds(t *testing.T) {
	l := newLimiter(4)
	for range 10 {
		l.overloaded(mustAcquire(t, l))
	}
	wantLimit(t, l, minLimit, 0)
	for range 100 {
		mustAcquire(t, l)
		l.release()
	}
	wantLimit(t, l, 4, 0)
}

func TestLimiterMakesRequestsWaitInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(1)
		mustAcquire(t, l)
		admitted := make(chan int, 2)
		for i := range 2 {
			go func() {
				_, _ = l.acquire(t.Context())
				admitted <- i
			}()
			synctest.Wait()
		}
		for want := range 2 {
			l.release()
			if got := <-admitted; got != want {
				t.Errorf("request %d was admitted, want %d", got, want)
			}
		}
		l.release()
	})
}

func TestLimiterLosesNoPlaceToACancelledRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(1)
		mustAcquire(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := l.acquire(ctx)
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		l.release()
		mustAcquire(t, l)
		wantLimit(t, l, 1, 1)
	})
}
