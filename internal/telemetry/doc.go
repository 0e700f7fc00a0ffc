// Package telemetry has the collectors that the Prometheus client lacks: histograms that are filled
// a batch at a time, and counters of seconds that grow while the wait they count still lasts.
package telemetry
