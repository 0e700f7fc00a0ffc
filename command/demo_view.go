package command

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
)

// liveView shows what arrives on the topics behind the pipeline, as a consumer sees it that reads
// committed records only.
type liveView struct {
	out      io.Writer
	terminal bool
	client   *kgo.Client
	topic    config.Topic

	forwarded, duplicates int
	killed                string // the process that was
	killedAt              int    // records that were done then
}

func newLiveView(out io.Writer, c config.Config) (*liveView, error) {
	t := c.Topics[0]
	client, err := kgo.NewClient(append(demoConnection(c),
		kgo.ConsumeTopics(t.Output, t.DuplicatesTopic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t.Output, err)
	}
	return &liveView{out: out, terminal: isTerminal(out), client: client, topic: t}, nil
}

func (v *liveView) close() { v.client.Close() }

func (v *liveView) done() int { return v.forwarded + v.duplicates }

// watch returns when everything that was sent is committed, or ctx ends. When a part is done it
// kills a process and starts it again.
func (v *liveView) watch(ctx context.Context, t *traffic, processes demoGroup) error {
	interval := time.Second
	if v.terminal {
		interval = 100 * time.Millisecond
	}
	last, lastAt := 0, time.Now()
	for {
		polling, cancel := context.WithTimeout(ctx, interval-time.Since(lastAt))
		fetches := v.client.PollFetches(polling)
		cancel()
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Topic == v.topic.Output {
				v.forwarded++
			} else {
				v.duplicates++
			}
		})
		if ctx.Err() != nil {
			return nil
		}
		if v.killed == "" && v.done() >= len(t.copies)/3 {
			if err := v.killOne(ctx, processes); err != nil {
				return err
			}
		}
		all := t.done.Load() && v.done() >= int(t.sent.Load())
		if now := time.Now(); all || now.Sub(lastAt) >= interval {
			v.line(int(t.sent.Load()), float64(v.done()-last)/now.Sub(lastAt).Seconds())
			last, lastAt = v.done(), now
		}
		if all {
			if v.terminal {
				fmt.Fprintln(v.out)
			}
			return nil
		}
		if err := processes.check(); err != nil {
			return err
		}
	}
}

// killOne kills a process at its work, and starts it again. It waits for a moment at which no
// partition moves: the embedded Kafka forgets to end the session of a member that dies while the
// group waits for it.
func (v *liveView) killOne(ctx context.Context, processes demoGroup) error {
	if settled, err := v.settled(ctx, processes); !settled || err != nil {
		return err
	}
	p := processes[len(processes)-1]
	if err := p.kill(); err != nil {
		return err
	}
	v.killed, v.killedAt = p.name, v.done()
	end := "\n"
	if v.terminal {
		end = "\x1b[K\n"
	}
	fmt.Fprintf(v.out, "%s is killed, and started again: its partitions move, which takes 6 s%s",
		p.name, end)
	return p.start()
}

func (v *liveView) line(sent int, rate float64) {
	end := "\n"
	if v.terminal {
		end = "\x1b[K\r"
	}
	fmt.Fprintf(v.out, "produced %7d   forwarded %7d   duplicates %6d   %6.0f records/s%s",
		sent, v.forwarded, v.duplicates, rate, end)
}

// table is what the whole run did.
func (d *demo) table(v *liveView, t *traffic, found check, took time.Duration) {
	fmt.Fprintln(d.out)
	table := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, value any, note string) {
		fmt.Fprintf(table, "%s\t%v\t  %s\n", name, value, note)
	}
	row("records in", t.sent.Load(), fmt.Sprintf("%d orders, some of them twice", t.orders))
	row("killed", v.killed, fmt.Sprintf("with SIGKILL, when %d were done", v.killedAt))
	row("forwarded", found.records, "on "+v.topic.Output)
	row("duplicates", v.duplicates,
		"retries on other partitions, of either process, and a range that was sent again")
	row("seconds", int(took.Seconds()), "the orders are paced, see --rate")
	row("lost", found.lost, "")
	row("doubled", found.doubled, "")
	row("changed", found.changed, "compared byte for byte")
	_ = table.Flush() // to a buffer and then d.out, whose errors the terminal shows
}
