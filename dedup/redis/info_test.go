package redis

import (
	"context"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// info is a server that has something to say about itself.
type info string

func (i info) Info(context.Context, ...string) *goredis.StringCmd {
	return goredis.NewStringResult(string(i), nil)
}

// Valkey 8 calls the mode otherwise: its sentinels and the nodes of its clusters went unrecognised.
func TestAModeIsReadAsRedisAndAsValkeyCallIt(t *testing.T) {
	for said, want := range map[info]string{
		"redis_version:7.0.15\r\nredis_mode:cluster\r\n": "cluster",
		"redis_version:7.2.4\r\nserver_name:valkey\r\n" +
			"valkey_version:8.0.1\r\nserver_mode:sentinel\r\n": "sentinel",
	} {
		got, err := ask(t.Context(), said)
		if err != nil || got.mode != want {
			t.Errorf("%q is taken for mode %q: %v", said, got.mode, err)
		}
	}
}
