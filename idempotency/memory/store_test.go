package memory_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/idempotency/memory"
	"github.com/kdedup/kdedup/idempotency/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) idempotency.Store { return memory.New() }, storetest.Features{
		ExpiryGranularity: time.Millisecond,
	})
}
