package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kdedup/kdedup/internal/testkit"
)

// On the real servers, in a database and on topics of the test's own.
func TestTheCommandsOfTheReadmeDoWhatItSays(t *testing.T) {
	kafka, postgres, shop := testkit.Kafka(t)[0], testkit.Postgres(t), testkit.Schema(t)
	t.Cleanup(func() { drop(t, postgres, shop) })
	config := filepath.Join(t.TempDir(), "kdedup.yaml")
	text, err := os.ReadFile("kdedup.yaml")
	if err == nil {
		err = os.WriteFile(config,
			[]byte(strings.ReplaceAll(string(text), "127.0.0.1:9480", "127.0.0.1:0")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range []string{testkit.KafkaEnv, testkit.CassandraEnv, testkit.CassandraV1Env,
		testkit.PostgresEnv, "KDEDUP_TEST_REDIS"} {
		t.Setenv(server, "") // else kdedup takes them for settings
		_ = os.Unsetenv(server)
	}
	testkit.RunReadme(t, "../..", testkit.ReadmeCommands(t, "examples/outbox/kdedup.yaml", config,
		"127.0.0.1:9092", kafka, "127.0.0.1:5432", postgres, "SHOP=shop", "SHOP="+shop))
}

func drop(t *testing.T, server, database string) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, "postgres://postgres@"+server+"/postgres")
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(
		ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{database}.Sanitize()+" WITH (FORCE)",
	); err != nil {
		t.Error(err)
	}
}
