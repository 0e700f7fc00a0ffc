//go:build crashpoints

package pipeline

import (
	"context"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/crashpoint"
)

// crashing puts the points at which a process can be killed between the steps of a lane, see
// package crashpoint.
func crashing(session Session, judge Judge) (Session, Judge) {
	return crashingSession{session}, crashingJudge{judge}
}

type crashingSession struct{ Session }

func (c crashingSession) Poll(ctx context.Context) (*consumer.Batch, error) {
	batch, err := c.Session.Poll(ctx)
	if batch != nil && err == nil {
		crashpoint.At("batch-polled")
	}
	return batch, err
}

func (c crashingSession) Begin(ctx context.Context, b *consumer.Batch) error {
	crashpoint.At("batch-planned")
	err := c.Session.Begin(ctx, b)
	if err == nil {
		crashpoint.At("batch-begun")
	}
	return err
}

func (c crashingSession) Commit(ctx context.Context, b *consumer.Batch) error {
	crashpoint.At("batch-forwarded")
	err := c.Session.Commit(ctx, b)
	if err == nil {
		crashpoint.At("batch-committed")
	}
	return err
}

type crashingJudge struct{ judge Judge }

func (c crashingJudge) Judge(
	ctx context.Context, messages []dedup.Message,
) ([]dedup.Judgement, error) {
	judgements, err := c.judge.Judge(ctx, messages)
	if err == nil {
		crashpoint.At("batch-claimed")
	}
	return judgements, err
}
