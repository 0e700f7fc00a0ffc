//go:build !race

package simulation

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// The model test runs pipelines and sessions against a model of Kafka: millions of steps, each
// chosen by a seed, with every fault that the model knows.
//
//	KDEDUP_MODEL_STEPS=100000000 go test ./pipeline/simulation -run TestModel$ -timeout 0    # more than by default
//	KDEDUP_MODEL_FROM=40001 KDEDUP_MODEL_STEPS=…  # other seeds
//	KDEDUP_MODEL_SEED=17 go test ./pipeline/simulation -run TestModel$                       # this seed only
const (
	defaultSteps = 6_000_000
	shortSteps   = 300_000
	stepsPerSeed = 3000
	workers      = 2
)

func TestModel(t *testing.T) {
	if text := os.Getenv("KDEDUP_MODEL_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		runSeed(t, seed)
		return
	}
	steps := defaultSteps
	if testing.Short() {
		steps = shortSteps
	}
	steps = number(t, "KDEDUP_MODEL_STEPS", steps)
	from := uint64(number(t, "KDEDUP_MODEL_FROM", 1))
	var seen [workers]sightings
	t.Run("workers", func(t *testing.T) {
		for worker := range workers {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				seed, done := from+uint64(worker), 0
				for ; done < steps/workers && !t.Failed(); seed += workers {
					w := runSeed(t, seed)
					done += w.step
					seen[worker].add(&w.sightings)
				}
				t.Logf("%d steps, up to seed %d", done, seed-workers)
			})
		}
	})
	for _, s := range seen[1:] {
		seen[0].add(&s)
	}
	t.Logf("seen: %v", &seen[0])
	if missing := seen[0].never(); len(missing) > 0 && steps >= defaultSteps && !t.Failed() {
		t.Errorf("the runs never came to: %v", missing)
	}
}

func number(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// runSeed runs a seed, and once more with a trace if it fails.
func runSeed(t *testing.T, seed uint64) *world {
	t.Helper()
	w, violated := playSeed(t, seed, nil, false)
	if violated == "" {
		return w
	}
	w, again := playSeed(t, seed, nil, true)
	if again != violated {
		t.Errorf("seed %d cannot be replayed: first %q, then %q", seed, violated, again)
	}
	t.Errorf("seed %d, step %d: %s\n%+v\nthe last events:\n%s\n"+
		"replay: KDEDUP_MODEL_SEED=%d go test ./pipeline/simulation -run 'TestModel$'", seed,
		w.step, violated, w.mix, w.tail(), seed)
	return w
}

// playSeed runs a seed in a bubble with a clock of its own, and returns what it violated.
func playSeed(t *testing.T, seed uint64, given []byte, trace bool) (w *world, violated string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(seed, given, trace)
		w.calls = os.Getenv("KDEDUP_MODEL_CALLS") != ""
		defer w.close()
		defer func() {
			if r := recover(); r != nil {
				v, ok := r.(violation)
				if !ok {
					t.Errorf("seed %d, step %d: panic", seed, w.step)
					panic(r)
				}
				violated = string(v)
			}
		}()
		w.run(stepsPerSeed)
	})
	return w, violated
}

func TestModelReplaysASeedExactly(t *testing.T) {
	for seed := range uint64(20) {
		first, _ := playSeed(t, seed, nil, true)
		second, _ := playSeed(t, seed, nil, true)
		if first.hash != second.hash {
			t.Errorf("seed %d: two runs differ\n%s", seed, cmp.Diff(first.lines, second.lines))
		}
	}
}

// FuzzModel lets the fuzzer choose what happens first; the seed chooses the rest.
func FuzzModel(f *testing.F) {
	f.Add(uint64(1), []byte{})
	f.Add(uint64(2), []byte("what happens, happens"))
	f.Fuzz(func(t *testing.T, seed uint64, given []byte) {
		if _, violated := playSeed(t, seed, given, false); violated == "" {
			return
		}
		w, violated := playSeed(t, seed, given, true)
		t.Errorf("step %d: %s\n%+v\nthe last events:\n%s", w.step, violated, w.mix, w.tail())
	})
}
