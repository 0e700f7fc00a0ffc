package command

import "testing"

func TestEveryOrderHasAPartition(t *testing.T) {
	for _, order := range []int32{0, 1, 271_182, 999_999, 1<<31 - 1} {
		for copied := range int32(3) {
			r := orderRecord(order, copied)
			if r.Partition < 0 || r.Partition >= demoPartitions {
				t.Errorf("copy %d of order %d is on partition %d", copied, order, r.Partition)
			}
		}
	}
}
