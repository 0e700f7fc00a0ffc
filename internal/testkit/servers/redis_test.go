package servers

import (
	"strings"
	"testing"
)

func TestRedisKeepsItsDataOverAKillIfItIsTold(t *testing.T) {
	NeedRedis(t)
	for _, c := range []struct {
		config map[string]string
		want   string
	}{
		{nil, "$-1"},
		{map[string]string{"appendonly": "yes", "appendfsync": "always"}, "value"},
	} {
		s, err := StartRedis(t.Context(), RedisOptions{Dir: t.TempDir(), Config: c.config})
		ForTest(t, s, err)
		if answer, err := callRedis(t.Context(), s.Addr(), "SET key value"); err != nil ||
			answer != "+OK" {
			t.Fatal(answer, err)
		}
		s.Kill()
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if answer, err := callRedis(t.Context(), s.Addr(), "GET key"); err != nil ||
			answer != c.want {
			t.Errorf("%v: %q, %v", c.config, answer, err)
		}
	}
}

func TestARedisClusterIsWholeWhenItIsStarted(t *testing.T) {
	NeedRedis(t)
	nodes, err := StartRedisCluster(t.Context(), 3, RedisOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	moved := 0
	for _, node := range nodes {
		ForTest(t, node, nil)
		switch answer, err := callRedis(t.Context(), node.Addr(), "SET key value"); {
		case err != nil:
			t.Fatal(err)
		case strings.HasPrefix(answer, "-MOVED "):
			moved++
		case answer != "+OK":
			t.Error(answer)
		}
	}
	if moved != 2 {
		t.Errorf("%d of 3 nodes know that another has the key", moved)
	}
}

func TestARedisThatRefusesItsSettingsSaysWhy(t *testing.T) {
	NeedRedis(t)
	_, err := StartRedis(t.Context(),
		RedisOptions{Dir: t.TempDir(), Config: map[string]string{"nonsense": "yes"}})
	if err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("got %v", err)
	}
}
