package embedded

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/hashlog"
)

func (s *Store) registerMetrics(reg prometheus.Registerer) {
	gauge := func(name, help string, value func([]hashlog.Stats) float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return value(s.stats()) }))
	}
	gauge("kdedup_embedded_disk_bytes", "Size of the store's files.", diskBytes)
	gauge("kdedup_embedded_read_amplification", "Files that a read may have to look into.",
		func(all []hashlog.Stats) (most float64) {
			for _, scope := range all {
				most = max(most, float64(scope.Indexes))
			}
			return most
		})
}

func (s *Store) stats() (all []hashlog.Stats) {
	for _, state := range s.states() {
		all = append(all, state.claims.Stats())
	}
	return all
}

func diskBytes(all []hashlog.Stats) (sum float64) {
	for _, scope := range all {
		sum += float64(scope.Bytes)
	}
	return sum
}

// Facts are for the status page.
func (s *Store) Facts() []dedup.Fact {
	all, claims := s.stats(), 0
	for _, scope := range all {
		claims += scope.Records
	}
	return []dedup.Fact{{Name: dedup.FactDisk, Value: diskBytes(all), Unit: "bytes"},
		{Name: dedup.FactClaims, Value: float64(claims), Unit: "count"}}
}
