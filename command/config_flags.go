package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/process"
)

// configFlags are the flags of the commands that read the configuration.
type configFlags struct {
	path     string
	instance string
	logLevel string
	apiAlone bool // a file without topics will do

	input func() io.Reader // standard input
	piped []byte           // what it said, once it was read
}

const (
	standardInput = "-"
	usualFile     = "kdedup.yaml"
	systemFile    = "/etc/kdedup/kdedup.yaml"
)

func (f *configFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.path, "config", "c", "",
		"the configuration `FILE`, or - for standard input (default $"+config.EnvFile+
			", else ./"+usualFile+", else "+systemFile+")")
	cmd.Flags().StringVar(&f.instance, "instance", "",
		"`NAME` of this process, in place of the configured one")
	addChoice(cmd, &f.logLevel, "log-level",
		"the least important `LEVEL` that is logged, in place of the configured one",
		"debug", "info", "warn", "error")
	completeFile(cmd)
	f.input = cmd.InOrStdin
}

// find settles which file is meant.
func (f *configFlags) find() error {
	if f.path == "" {
		f.path = os.Getenv(config.EnvFile)
	}
	if f.path != "" {
		return nil
	}
	for _, path := range []string{usualFile, systemFile} {
		if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
			f.path = path
			return nil
		}
	}
	return fmt.Errorf("there is no configuration: name its file with -c or %s, or write %s or %s, "+
		"as kdedup init does; to see kdedup work without one, run: kdedup demo", config.EnvFile,
		usualFile, systemFile)
}

// read reads the configuration. Standard input is read once and says the same ever after.
func (f *configFlags) read() (config.Config, error) {
	c, _, err := f.parse()
	return c, err
}

func (f *configFlags) parse() (config.Config, config.Places, error) {
	if err := f.find(); err != nil {
		return config.Config{}, nil, err
	}
	data, err := f.bytes()
	if err != nil {
		return config.Config{}, nil, fmt.Errorf("read config: %w", err)
	}
	env := os.Environ()
	for path, value := range map[string]string{"instance": f.instance, "log.level": f.logLevel} {
		if value != "" {
			env = append(env, config.EnvName(path)+"="+value)
		}
	}
	return config.Parse(f.name(), data, env)
}

// name is what messages call the file.
func (f *configFlags) name() string {
	if f.path == standardInput {
		return "from standard input"
	}
	return f.path
}

func (f *configFlags) bytes() ([]byte, error) {
	if f.path != standardInput {
		return os.ReadFile(f.path)
	}
	if f.piped == nil {
		data, err := io.ReadAll(f.input())
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		f.piped = data // not nil, however little it is
	}
	return f.piped, nil
}

// load reads the configuration and makes the logger that it asks for.
func (f *configFlags) load(cmd *cobra.Command) (config.Config, *slog.Logger, error) {
	c, log, _, err := f.loadLevel(cmd.ErrOrStderr())
	return c, log, err
}

// loadLevel is load with the logger's level, for a log that is written there.
func (f *configFlags) loadLevel(
	to io.Writer,
) (config.Config, *slog.Logger, *slog.LevelVar, error) {
	c, err := f.read()
	if err != nil {
		return config.Config{}, nil, nil, usageError{err}
	}
	if len(c.Topics) == 0 && !f.apiAlone {
		return config.Config{}, nil, nil, usageError{fmt.Errorf("config %s: topics: is required, "+
			"at least one entry; kdedup serve answers the api of a file without topics",
			f.name())}
	}
	log, level := process.NewLogger(c.Log, to, f.named)
	for _, name := range c.UnknownEnv {
		log.Warn("environment variable overrides no setting", "name", name)
	}
	if names := slices.Sorted(maps.Keys(c.NumberedEnv)); len(names) > 0 && len(c.Topics) > 1 {
		log.Warn("variables name entries of topics by their numbers: an entry that is put in front "+
			"of them takes the settings over", "names", names, "hint",
			"name the input, such as "+config.NamedEnv(names[0], c.NumberedEnv[names[0]]))
	}
	return c, log, level, nil
}

// named puts the file in use into the commands that an error or a hint advises.
func (f *configFlags) named(text string) string { return namedFile(text, f.path) }

func namedFile(text, path string) string {
	if path == "" || path == standardInput {
		return text
	}
	if strings.ContainsAny(path, " \t'\"$`\\") {
		path = "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return strings.ReplaceAll(text, "-c FILE", "-c "+path)
}
