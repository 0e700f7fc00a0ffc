package postgres

import (
	"context"

	"github.com/kdedup/kdedup/dedup"
)

// renew puts off the ends of claims that copies have found. Their answers are there, but undecided;
// those that it does not renew stay so. Then the claim was renewed by another copy just now, has
// ended, or was released: the next round finds out which.
func (c *call) renew(ctx context.Context, of []int32) error {
	var due []int32
	var keys [][]byte
	for _, i := range of {
		// The zero answer has no time.
		if a := &c.answers[i]; a.Outcome == dedup.Undecided && !a.ClaimedAt.IsZero() {
			due, keys = append(due, i), append(keys, c.keys[i])
		}
	}
	if len(due) == 0 {
		return nil
	}
	err := c.run(ctx, func(ctx context.Context) error { return c.extend(ctx, due, keys) })
	for _, i := range due {
		if c.answers[i].Outcome == dedup.Undecided {
			c.answers[i] = dedup.Answer{}
		}
	}
	return err
}

// extend renews those of the claims that it finds as they were read. As with write, nothing counts
// before the statement has ended well.
func (c *call) extend(ctx context.Context, due []int32, keys [][]byte) error {
	rows, err := c.db.Query(ctx, c.sql.renew, execMode, c.scope, keys, c.space.TTL.Seconds(),
		c.space.DueAt().Seconds())
	if err != nil {
		return err
	}
	defer rows.Close()
	var renewed []int32
	for rows.Next() {
		i, err := c.find(due, rows.RawValues()[0])
		if err != nil {
			return err
		}
		renewed = append(renewed, i)
	}
	if rows.Close(); rows.Err() != nil {
		return rows.Err()
	}
	for _, i := range renewed {
		c.answers[i].Outcome = dedup.Exists
	}
	return nil
}
