package claimlog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// pass lets time pass, after which the log has let go what is older.
func (m *settingsModel) pass(d, older time.Duration) {
	time.Sleep(d) // of the bubble
	m.dropWhile(func(e Entry) bool { return time.Since(time.UnixMilli(e.Time)) > older })
}

// quietly has three processes begin in a log with one retention.
func quietly(t *testing.T, test func(t *testing.T, m *settingsModel)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newSettingsModel(t, *modelSeed)
		m.logs.keeps, m.scope.Sliding = false, false
		m.set(4 * time.Hour)
		test(t, m)
		for _, s := range m.stores {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// The retention is lowered at night.
func TestWhatHoldsForLongIsWrittenAgainWhileNobodyClaims(t *testing.T) {
	quietly(t, func(_ *testing.T, m *settingsModel) {
		m.set(20 * time.Hour)
		m.claim(m.stores[0], []dedup.ID{"a"})
		m.set(time.Hour)
		for range 12 {
			m.pass(time.Hour, time.Hour+Margin)
		}
		m.paths[1] = ""
		m.begin(1)
		m.claim(m.stores[1], []dedup.ID{"a"})
	})
}

// Where the ttl was raised, the blocks that are left have claims that hold for long, and what went
// before them had none.
func TestAProcessBeginsSoonAfterTheTTLWasRaised(t *testing.T) {
	quietly(t, func(_ *testing.T, m *settingsModel) {
		m.claim(m.stores[0], []dedup.ID{"a", "b", "c", "d"})
		time.Sleep(5 * time.Hour) // of the bubble
		m.set(20 * time.Hour)
		m.claim(m.stores[0], []dedup.ID{"a", "b", "c", "d"})
		m.pass(time.Hour, 4*time.Hour+Margin) // by the retention of before
		m.paths[1] = ""
		m.begin(1)
		m.claim(m.stores[1], []dedup.ID{"a"})
	})
}
