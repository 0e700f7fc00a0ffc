package powercut

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// sector is what a disk writes as a whole.
const sector = 512

// Restore makes the files that are there when the power is back, in an empty directory. Files that
// were not made by this disk, as locks are, stay or go.
func (d *Disk) Restore(into string, random *rand.Rand) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := &restore{random: random, names: anyShare(random), lengths: anyShare(random),
		sectors: anyShare(random)}
	if random.IntN(2) == 0 {
		r.fill = byte(random.IntN(256))
	}
	return r.directory(d.root, d.path, into)
}

// anyShare is nothing, all, or something between, so that the extremes are not rare.
func anyShare(random *rand.Rand) float64 {
	switch random.IntN(4) {
	case 0:
		return 0
	case 1:
		return 1
	default:
		return random.Float64()
	}
}

// restore has the shares of what was not synced and is there.
type restore struct {
	random                  *rand.Rand
	names, lengths, sectors float64
	fill                    byte // in the sectors that were not written
}

func (r *restore) directory(d *directory, from, into string) error {
	left := maps.Clone(d.durable)
	for _, c := range d.pending {
		if r.random.Float64() < r.names {
			c.apply(left)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		to := filepath.Join(into, name)
		var err error
		switch node := left[name].(type) {
		case *directory:
			if err = os.Mkdir(to, 0o700); err == nil {
				err = r.directory(node, filepath.Join(from, name), to)
			}
		case *file:
			err = os.WriteFile(to, r.content(node), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return r.others(d, from, into)
}

// content is what was synced, and behind it up to some length the sectors that were written.
func (r *restore) content(f *file) []byte {
	behind := len(f.data) - f.synced
	switch length := r.random.Float64(); {
	case r.lengths == 0:
		behind = 0
	case length > r.lengths:
		behind = r.random.IntN(behind + 1)
	}
	data := slices.Clone(f.data[:f.synced+behind])
	for at := f.synced / sector * sector; at < len(data); at += sector {
		if r.random.Float64() < r.sectors {
			continue
		}
		for i := max(at, f.synced); i < min(at+sector, len(data)); i++ {
			data[i] = r.fill
		}
	}
	return data
}

// others copies, or does not, the files that the disk does not know.
func (r *restore) others(d *directory, from, into string) error {
	entries, err := os.ReadDir(from)
	if os.IsNotExist(err) {
		return nil // the directory was removed, and is back
	}
	for _, entry := range entries {
		if _, known := d.seen[entry.Name()]; known || entry.IsDir() || r.random.IntN(2) == 0 {
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, entry.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(into, entry.Name()), data, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return err
}
