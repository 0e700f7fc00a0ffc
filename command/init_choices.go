package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kdedup/kdedup/command/proposal"
	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// chooseInput wants a topic that exists.
func (f *initFlags) chooseInput(ctx context.Context, l *look) (string, error) {
	names, err := l.topics(ctx)
	if err != nil {
		return "", err
	}
	name, inputs := f.topic, withoutOwn(names)
	if name == "" && f.asks {
		fmt.Fprintf(f.talk, "Topics: %s\n", someNames(inputs))
	}
	for {
		if name == "" {
			name, err = f.ask(ctx, "Topic with duplicates", onlyOne(inputs), "--topic")
			if err != nil {
				return "", err
			}
		}
		err := knownTopic(name, names)
		if !f.retry(err) {
			return name, err
		}
		name = ""
	}
}

// withoutOwn leaves out what kdedup makes beside a topic that is there.
func withoutOwn(names []string) []string {
	own := make(map[string]bool)
	for _, name := range names {
		for _, made := range []string{".clean", ".dlq", ".duplicates", "-dedup.fence",
			"-dedup.claims", "-dedup.claims.scopes", "-dedup.redrive", "-dedup.keepers"} {
			own[name+made] = true
		}
		if group, is := strings.CutSuffix(name, ".claims.scopes"); is { // of any name
			for _, made := range []string{".claims", ".claims.scopes", ".fence", ".redrive",
				".keepers"} {
				own[group+made] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return own[name] })
}

func onlyOne(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return ""
}

// respell looks for IDs in more than one spelling. Of UUIDs it makes one ID; other IDs that differ
// in case may be different, and are for the reader of the file to decide.
func (f *initFlags) respell(p *plan, sample proposal.Sample) error {
	e, err := p.extractor()
	if err != nil {
		return err
	}
	found := sample.Spellings(e)
	if found.IDs == 0 {
		return nil
	}
	p.spellings = fmt.Sprintf("IDs of the sample in more than one spelling: %d, such as %s and %s.",
		found.IDs, found.One, found.Other)
	can := slices.Contains([]string{config.FromHeader, config.FromKey, config.FromJSON,
		config.FromAvro, config.FromProtobuf, config.FromJSONSchema}, p.id.From)
	switch {
	case found.UUIDs && can:
		p.id.Normalize = []string{config.NormalizeTrim, config.NormalizeUnquote,
			config.NormalizeUUID}
		p.spellings += " normalize makes one ID of them."
	case can:
		p.spellings += " If they name one message, write normalize: [trim, unquote, lower] into " +
			"message_id; by default they are different IDs."
	default:
		p.spellings += " For kdedup they are different IDs."
	}
	fmt.Fprintf(f.talk, "\n%s\n", p.spellings)
	return nil
}

// chooseTTL looks at the distances of copies.
func (f *initFlags) chooseTTL(
	ctx context.Context, p *plan, sample proposal.Sample, l *look,
) error {
	if f.ttl != 0 {
		p.ttl = f.ttl
		return nil
	}
	window, err := windowOf(ctx, *p, sample, l)
	if err != nil {
		return err
	}
	p.ttl, p.why = window.TTL, window.Why
	usual := report.WriteTTL(p.ttl)
	if f.asks && !f.usually {
		fmt.Fprintf(f.talk, "\n%s\n", sentences(p.why))
	}
	for {
		answer, err := f.ask(ctx, "Remember IDs for", usual, "--ttl")
		if err != nil || answer == usual {
			return err
		}
		d, err := time.ParseDuration(answer)
		if err == nil {
			p.ttl, p.why = d, nil
			return nil
		}
		err = wrongAnswer{errors.New("must be a duration such as 168h")}
		if !f.retry(err) {
			return err
		}
	}
}

// topic is the entry as it is planned so far.
func (p plan) topic() config.Topic {
	t := config.DefaultTopic()
	t.Input, t.MessageID = p.input, p.id
	if p.id.Preset != "" {
		t = t.WithPreset(p.id.Preset)
		t.MessageID.Format = p.id.Format
	}
	if len(p.ignore) > 0 {
		t.Fingerprint.Ignore, t.Fingerprint.Format = p.ignore, p.format()
	}
	if p.trusted {
		t.Fingerprint.Of = config.FingerprintNone
	}
	if p.tombstones {
		t.OnTombstone = config.ActionForward
	}
	return t
}

// extractor is that of the topic as it is planned so far.
func (p plan) extractor() (*messageid.Extractor, error) {
	e, err := connect.ExtractorOf(p.topic(), p.registry())
	if err != nil {
		return nil, usageError{fmt.Errorf("--id: %w", err)}
	}
	return e, nil
}

func windowOf(
	ctx context.Context, p plan, sample proposal.Sample, l *look,
) (proposal.Window, error) {
	extractor, err := p.extractor()
	if err != nil {
		return proposal.Window{}, err
	}
	asking, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	keeps, err := kafka.KeepingOf(asking, l.client, p.input)
	if err != nil { // the right to see settings may be missing
		l.log.Warn("how long the topic keeps its records is not known", "error", err)
	}
	keeping := proposal.Keeping(keeps.For)
	if keeps.Ever {
		keeping = -1
	}
	return sample.Window(ctx, extractor, keeping, time.Now())
}

// chooseStore takes what the environment says for the usual one.
func (f *initFlags) chooseStore(ctx context.Context, p *plan, env config.Store) (err error) {
	if p.store = f.store; p.store == "" {
		if p.store, err = f.askStore(ctx, env.Type); err != nil {
			return err
		}
	}
	switch p.store {
	case config.StoreEmbedded:
		p.index = env.Embedded.Path
		return nil
	case config.StoreKafka:
		p.index = env.Kafka.Path
		return nil
	}
	known := map[string][]string{config.StoreCassandra: env.Cassandra.Hosts,
		config.StoreRedis: env.Redis.Addresses, config.StorePostgres: env.Postgres.Hosts}[p.store]
	if p.hosts = f.hosts; len(p.hosts) == 0 {
		p.hosts = known
	}
	if len(p.hosts) > 0 {
		return nil
	}
	usual := ""
	if f.asks {
		usual = map[string]string{config.StoreCassandra: "localhost:9042",
			config.StoreRedis: "localhost:6379", config.StorePostgres: "localhost:5432"}[p.store]
	}
	answer, err := f.ask(ctx, "Servers of the store", usual, "--store-hosts")
	p.hosts = strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || r == ' ' })
	return err
}

func (f *initFlags) askStore(ctx context.Context, usual string) (string, error) {
	types := []string{config.StoreKafka, config.StoreEmbedded, config.StoreCassandra,
		config.StoreRedis, config.StorePostgres}
	for {
		answer, err := f.ask(ctx, "\nStore of the claims: kafka (a topic, for any number of processes), "+
			"embedded (files of\none process), cassandra, redis or postgres", usual, "--store")
		if err != nil || slices.Contains(types, answer) {
			return answer, err
		}
		err = wrongAnswer{fmt.Errorf("must be %s, got %q", oneOf(types), answer)}
		if !f.retry(err) {
			return "", err
		}
	}
}
