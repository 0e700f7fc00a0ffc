package powercut

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seeds runs a test for some seeds, side by side, and tells it how many cuts to make.
// KDEDUP_POWER_SEED names one seed, KDEDUP_POWER_CUTS another number of cuts. stream keeps the
// chances of different tests apart.
func Seeds(
	t *testing.T, stream uint64, usual int, test func(t *testing.T, random *rand.Rand, cuts int),
) {
	t.Helper()
	seeds, cuts := []uint64{0, 1, 2, 3}, usual
	if text := os.Getenv("KDEDUP_POWER_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = []uint64{seed}
	}
	if text := os.Getenv("KDEDUP_POWER_CUTS"); text != "" {
		var err error
		if cuts, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			test(t, rand.New(rand.NewPCG(seed, stream)), cuts)
		})
	}
}

// Trial is a directory through many cuts.
type Trial struct {
	T      *testing.T
	Random *rand.Rand
	Dir    string
	Disk   *Disk
}

// UntilTheCut opens what the last cut left, and steps on until the next one. The cut comes within
// one of the numbers of operations.
func (tr *Trial) UntilTheCut(within []int, open, step func() error) {
	tr.T.Helper()
	tr.restore()
	tr.Disk.CutAfter(tr.Random.IntN(within[tr.Random.IntN(len(within))]))
	err := open()
	for err == nil {
		err = step()
	}
	if !errors.Is(err, ErrPower) {
		tr.T.Fatalf("before the cut: %v", err)
	}
}

func (tr *Trial) restore() {
	tr.T.Helper()
	into := tr.T.TempDir()
	if tr.Disk != nil {
		if err := errors.Join(tr.Disk.Restore(into, tr.Random), os.RemoveAll(tr.Dir)); err != nil {
			tr.T.Fatal(err)
		}
	}
	disk, err := Open(into)
	if err != nil {
		tr.T.Fatal(err)
	}
	tr.Dir, tr.Disk = into, disk
}
