package migrate

import (
	"context"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/pause"
)

// slack is how far the end of a claim may be off: for stores that count in seconds, and for the
// time that requests took.
const slack = 10 * time.Second

// Comparison is what stands in two places.
type Comparison struct {
	Old, New int64 // claims that were read; one that was read twice counts twice
	Differ   Differences
}

// Compare looks for the claims of each place in the other one.
func Compare(ctx context.Context, o Options) (c Comparison, err error) {
	o = o.withDefaults()
	if c.Old, err = c.compare(ctx, o, o.From, o.To, func(old, new *dedup.Standing) {
		c.Differ.add(old, new)
	}); err == nil {
		c.New, err = c.compare(ctx, o, o.To, o.From, func(new, old *dedup.Standing) {
			if old == nil { // others were told before
				c.Differ.add(nil, new)
			}
		})
	}
	if err != nil {
		return c, fmt.Errorf("compare claims: %w", err)
	}
	return c, nil
}

// compare looks for the claims of one place in another one.
func (c *Comparison) compare(
	ctx context.Context, o Options, of, in Place, differ func(claim, other *dedup.Standing),
) (read int64, err error) {
	err = of.Store.Export(ctx, of.Scope, func(page []dedup.Standing) error {
		found, err := find(ctx, o, in, page)
		if err != nil {
			return err
		}
		now := o.Now()
		for i := range page {
			other, ok := found[page[i].ID]
			switch {
			case ok && Same(&page[i], &other):
			case ok:
				differ(&page[i], &other)
			case page[i].Left(now) > slack:
				differ(&page[i], nil)
			}
		}
		read += int64(len(page))
		o.Progress(c.Old + read)
		return nil
	})
	return read, err
}

// Same reports whether two stores have the same claim.
func Same(a, b *dedup.Standing) bool {
	return a.ID == b.ID && a.Owner == b.Owner && a.Fingerprint == b.Fingerprint &&
		a.ClaimedAt.Equal(b.ClaimedAt) && a.Ends.Sub(b.Ends).Abs() <= slack
}

func find(
	ctx context.Context, o Options, in Place, page []dedup.Standing,
) (map[dedup.ID]dedup.Standing, error) {
	ids := make([]dedup.ID, len(page))
	for i := range page {
		ids[i] = page[i].ID
	}
	for failed := 1; ; failed++ {
		found, err := in.Store.Find(ctx, in.Scope, ids)
		if err == nil {
			byID := make(map[dedup.ID]dedup.Standing, len(found))
			for _, c := range found {
				byID[c.ID] = c
			}
			return byID, nil
		}
		if failed > o.Attempts {
			return nil, err
		}
		if !pause.For(ctx, o.Pause) {
			return nil, context.Cause(ctx)
		}
	}
}
