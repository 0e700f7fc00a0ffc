package e2e_test

import "testing"

// With group_protocol consumer (KIP-848) the broker assigns the partitions, and takes them away one
// by one.
func TestAssignmentByTheBroker(t *testing.T) {
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		d := deploy(t, delivery, "batch_records: 500", "group_protocol: consumer")
		d.produce(60_000, 4)
		d.start("one")
		for _, name := range []string{"guest-1", "guest-2", "guest-3"} {
			guest := d.start(name)
			guest.waitReady()
			guest.stop()
		}
		d.waitFor(1)
		d.mustBeClean()
	})
}
