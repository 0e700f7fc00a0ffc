package claimlog

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// sharingMetrics are those of a log whose shards are shared out.
type sharingMetrics struct {
	spaceMetrics
	kept     prometheus.Gauge
	hedged   prometheus.Counter
	requests *prometheus.CounterVec

	ask, answer prometheus.Observer // how long it took
}

func (m *metrics) sharing(group string) *sharingMetrics {
	return &sharingMetrics{
		spaceMetrics: m.of(group, allShards), kept: m.kept.WithLabelValues(group),
		hedged:   m.hedged.WithLabelValues(group),
		ask:      m.steps.WithLabelValues(group, "ask"),
		answer:   m.steps.WithLabelValues(group, "answer"),
		requests: m.requests.MustCurryWith(prometheus.Labels{"consumer_group": group}),
	}
}

// asked counts a request.
func (m *sharingMetrics) asked(keeper string, err error) {
	result := "answered"
	if errors.Is(err, ErrBusy) {
		result = "busy"
	} else if err != nil {
		result = "failed"
	}
	m.requests.WithLabelValues(keeper, result).Inc()
}

// noteLocked adds up what the indexes of single shards say.
func (s *sharing) noteLocked() {
	var unread, bytes float64
	for _, space := range s.local {
		state := space.state()
		unread, bytes = unread+float64(state.Left), bytes+float64(state.Bytes)
	}
	s.metrics.unread.Set(unread)
	s.metrics.bytes.Set(bytes)
	s.metrics.kept.Set(float64(len(s.told)))
	reading := 0.0
	if s.missingLocked() == nil {
		reading = 1
	}
	s.metrics.reading.Set(reading)
}
