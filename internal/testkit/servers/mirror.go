package servers

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// MirrorOptions describe a MirrorMaker 2 that copies topics from one cluster to another.
type MirrorOptions struct {
	Dir    string // for its configuration and log
	From   string // brokers
	To     string
	Topics string // a regular expression; they keep their names
}

// StartMirror starts it as a program of its own (connect-mirror-maker.sh). Offsets of all groups
// are copied each second, as sync.group.offsets.enabled has it. It may not have copied anything
// when StartMirror returns.
func StartMirror(ctx context.Context, opts MirrorOptions) (*Server, error) {
	home, err := newJavaHome(ctx, "mirror", KafkaVersion(), opts.Dir, "log4j2.properties")
	if err != nil {
		return nil, fmt.Errorf("start MirrorMaker: %w", err)
	}
	file := filepath.Join(home.dir, "mm2.properties")
	if err := writeProperties(file, map[string]string{
		"clusters":                              "from, to",
		"from.bootstrap.servers":                opts.From,
		"to.bootstrap.servers":                  opts.To,
		"from->to.enabled":                      "true",
		"to->from.enabled":                      "false",
		"topics":                                opts.Topics,
		"groups":                                ".*",
		"replication.policy.class":              identityPolicy,
		"replication.factor":                    "1",
		"offset-syncs.topic.replication.factor": "1",
		"checkpoints.topic.replication.factor":  "1",
		"heartbeats.topic.replication.factor":   "1",
		"config.storage.replication.factor":     "1",
		"offset.storage.replication.factor":     "1",
		"status.storage.replication.factor":     "1",
		"sync.group.offsets.enabled":            "true",
		"sync.group.offsets.interval.seconds":   "1",
		"emit.checkpoints.interval.seconds":     "1",
		"refresh.groups.interval.seconds":       "1",
		"refresh.topics.interval.seconds":       "1",
		"offset.lag.max":                        "0",
	}); err != nil {
		return nil, fmt.Errorf("start MirrorMaker: %w", err)
	}
	return StartProgram(ctx, ProgramOptions{
		Name: "MirrorMaker", Dir: home.dir,
		Command: func() *exec.Cmd {
			return home.command("256m", QuickStart, "org.apache.kafka.connect.mirror.MirrorMaker",
				file)
		},
		Probe: func(context.Context) error { return nil },
	})
}

const identityPolicy = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
