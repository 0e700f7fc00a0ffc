package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/command/proposal"
	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/process"
)

const initHelp = `Look at the newest records of a topic, propose where their message ID stands
and how long it is to be remembered, and write a configuration with comments. On a
terminal, init asks for what flags do not say; Enter takes what it proposes.
Elsewhere it takes what it proposes, and needs --brokers and --topic. It joins no
consumer group and changes nothing on the servers.

Settings of the connection that have no flag are taken from the environment, as with a file:
KDEDUP_KAFKA_SASL_PASSWORD, for example.`

// newInit asks where isTerminal says that the input is one.
func newInit(isTerminal func(io.Reader) bool) *cobra.Command {
	f := initFlags{records: proposal.DefaultLimits.Records, output: usualFile}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a configuration for a topic, from a look at its records",
		Long:  initHelp,
		Example: "  kdedup init\n" +
			"  kdedup init --brokers localhost:9092 --topic orders\n" +
			"  kdedup init --brokers b:9093 --topic orders --id header:message-id --output -",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.talk = cmd.OutOrStdout()
			if f.output == standardOutput {
				f.talk = cmd.ErrOrStderr()
			}
			f.dialogue = dialogue{in: bufio.NewReader(cmd.InOrStdin()), out: f.talk,
				asks: isTerminal(cmd.InOrStdin()), usually: f.yes}
			return f.run(cmd)
		},
	}
	f.add(cmd)
	return cmd
}

// standardOutput is the name of a file.
const standardOutput = "-"

type initFlags struct {
	connectionFlags
	registryFlags
	dialogue
	talk io.Writer // for people

	topic, clean, group string
	id                  chosenID
	ttl                 time.Duration
	store               string
	hosts               []string
	output              string
	records             int64
	force, yes          bool
}

func (f *initFlags) add(cmd *cobra.Command) {
	f.connectionFlags.add(cmd)
	f.registryFlags.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.topic, "topic", "", "`TOPIC` with duplicates")
	flags.Var(&f.id, "id", "where the message ID stands: `PLACE`, "+idForms)
	flags.DurationVar(&f.ttl, "ttl", 0, "how long an ID is remembered: `DURATION`")
	addChoice(cmd, &f.store, "store", "where claims are kept: `TYPE`", config.StoreKafka,
		config.StoreEmbedded, config.StoreCassandra, config.StoreRedis, config.StorePostgres)
	flags.StringSliceVar(&f.hosts, "store-hosts", nil,
		"servers of a store of type cassandra, redis or postgres as `HOST:PORT`, with commas")
	flags.StringVar(&f.clean, "clean", "", "`TOPIC` for the clean records (default <topic>.clean)")
	flags.StringVar(&f.group, "group", "", "consumer `GROUP` (default <topic>-dedup)")
	flags.StringVar(&f.output, "output", f.output, "`FILE` to write, or - for standard output")
	flags.Int64Var(&f.records, "records", f.records,
		"look at so many of the newest records: `NUMBER`")
	flags.BoolVar(&f.force, "force", false, "overwrite a file that exists")
	flags.BoolVarP(&f.yes, "yes", "y", false, "ask nothing: take what is proposed")
}

const mostSampled = 100_000

func (f *initFlags) check() error {
	if f.records < 1 || f.records > mostSampled {
		return usageError{fmt.Errorf("--records must be 1 to %d, got %d", mostSampled, f.records)}
	}
	if f.output == standardOutput || f.force {
		return nil
	}
	_, err := os.Stat(f.output)
	switch {
	case err == nil:
		return usageError{fmt.Errorf("%s exists: --force overwrites it, and --output names "+
			"another file, or - for standard output", f.output)}
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("--output: %w", err)
}

// placeholder is an entry that lets a draft be read whose topic is not known yet.
const placeholder = `topics:
  - {input: topic, output: topic.clean, consumer_group: topic-dedup, message_id: {from: key},
     dead_letter_topic: topic.dlq}
`

func (f *initFlags) run(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	if err := f.check(); err != nil {
		return err
	}
	if err := f.askBrokers(ctx); err != nil {
		return err
	}
	draft, err := f.draft(placeholder)
	if err != nil {
		return err
	}
	log, _ := process.NewLogger(draft.Log, cmd.ErrOrStderr(), nil)
	warnOfUnencrypted(draft, log)
	servers := connect.NewServers(draft, log)
	defer func() { err = errors.Join(err, servers.Close()) }()
	l, _, err := connectToLook(ctx, servers, "init", log)
	if err != nil {
		return err
	}
	p, err := f.plan(ctx, draft, l)
	defer p.schemas.close()
	if err != nil {
		return err
	}
	if err := f.write(p, cmd.OutOrStdout()); err != nil {
		return err
	}
	f.sayNext(ctx, p, l.client)
	return nil
}

func (f *initFlags) askBrokers(ctx context.Context) error {
	if len(f.brokers) > 0 || os.Getenv(config.EnvName("kafka.brokers")) != "" {
		return nil
	}
	usual := "localhost:9092"
	if !f.asks {
		usual = ""
	}
	answer, err := f.ask(ctx, "Brokers", usual, "--brokers")
	f.brokers = strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || r == ' ' })
	return err
}

// plan asks for and finds out what the file is to say.
func (f *initFlags) plan(ctx context.Context, draft config.Config, l *look) (p plan, err error) {
	p = plan{kafka: draft.Kafka, passwordFile: f.passwordFile}
	if p.input, err = f.chooseInput(ctx, l); err != nil {
		return p, err
	}
	p.output, p.group = f.clean, f.group
	if p.output == "" {
		p.output = p.input + ".clean"
	}
	if p.group == "" {
		p.group = p.input + "-dedup"
	}
	limits := proposal.DefaultLimits
	limits.Records = f.records
	sample, err := proposal.Read(ctx, l.client, l.options, p.input, limits)
	if err != nil {
		return p, err
	}
	if p.schemas, err = f.chooseRegistry(ctx, draft, sample, l.log); err != nil {
		return p, err
	}
	if p.schemas != nil {
		sample.Schemas = p.schemas.Schemas
	}
	if err := f.chooseID(ctx, &p, sample); err != nil {
		return p, err
	}
	if err := f.respell(&p, sample); err != nil {
		return p, err
	}
	var documents messageid.Documents
	for _, r := range sample.Records {
		documents.Count(r.Value)
	}
	p.cutOff = int(documents.CutOff())
	if err := f.chooseTTL(ctx, &p, sample, l); err != nil {
		return p, err
	}
	return p, f.chooseStore(ctx, &p, draft.Store)
}

// write checks the text as run would, and writes it.
func (f *initFlags) write(p plan, out io.Writer) error {
	text := p.text()
	if _, _, err := config.Parse(f.output, []byte(text), os.Environ()); err != nil {
		return usageError{err}
	}
	if f.output == standardOutput {
		_, err := io.WriteString(out, text)
		return err
	}
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if f.force {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(f.output, how, 0o644)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// sayNext tells what to do with the file.
func (f *initFlags) sayNext(ctx context.Context, p plan, client *kgo.Client) {
	if f.output == standardOutput {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	if why, err := kafka.GroupInUse(ctx, client, p.group, p.input); err == nil && why != "" {
		fmt.Fprintf(f.talk, "\nNote: %s. A new pipeline is better off with a group of its own: "+
			"--group names it.\n", why)
	}
	if clean, err := logreader.Describe(ctx, client, p.output,
		logreader.Bounds{}); err == nil && clean.Offsets() > 0 {
		fmt.Fprintf(f.talk, "\nNote: topic %s has records already. If another pipeline writes it, "+
			"choose another one: --clean names it. If they came from %s, claim them before the "+
			"first run: kdedup backfill.\n", p.output, p.input)
	}
	fmt.Fprintf(f.talk, "\nWrote %s: message ID %s, ttl %s, claims in a store of type %s. Look at "+
		"it, and then:\n\n", f.output, idText(p.id), report.WriteTTL(p.ttl), p.store)
	for _, row := range [][2]string{
		{"report", "counts the copies on the whole topic by that ID"},
		{"setup", "makes " + p.output + " and what else is missing"},
		{"validate", "checks everything"},
		{"run", "consumers of " + p.output + " read with isolation.level=read_committed"},
	} {
		fmt.Fprintln(f.talk, namedFile(fmt.Sprintf("  kdedup %-8s -c FILE   # %s", row[0], row[1]),
			f.output))
	}
	fmt.Fprintln(f.talk, "\nWhat that setting is in each client, and which clients need "+
		"delivery: at_least_once instead: docs/readers.md")
}
