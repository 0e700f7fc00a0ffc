package e2e_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/internal/testkit"
)

// A backlog that takes the producer's quota many times the transaction's time, in one batch, gets
// through in smaller ones.
func TestAQuotaMakesBatchesSmaller(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		const perSecond = 150_000 // bytes
		d := deploy(t, delivery, "transaction_timeout: 5s", "lanes: 1")
		client := fmt.Sprintf("%s-one-0", d.group)
		altered, err := d.admin.AlterClientQuotas(t.Context(), []kadm.AlterClientQuotaEntry{{
			Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &client}},
			Ops:    []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: perSecond}},
		}})
		if err != nil || len(altered) != 1 || altered[0].Err != nil {
			t.Fatalf("set the quota: %+v, %v", altered, err)
		}
		d.produce(4000, 31) // 4.4 MB
		one := d.start("one")
		d.waitFor(1)
		limit := one.scrape()["kdedup_batch_limit_bytes"].GetMetric()[0].GetGauge().GetValue()
		if delivery == exactlyOnce && limit >= 4<<20 {
			t.Errorf("the next batch may have %v bytes", limit)
		}
		d.mustLoseNothing()
		one.stop()
	})
}
