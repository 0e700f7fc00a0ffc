package steadyclock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/kdedup/kdedup/internal/durable"
)

// fileState is the file's content; times are in milliseconds since 1970.
type fileState struct {
	Version int           `json:"version"`
	Steady  int64         `json:"steady"`
	Other   int64         `json:"other,omitempty"` // 0: no dispute
	Stood   time.Duration `json:"stood,omitempty"`
}

const fileVersion = 1

// Open returns the clock that Save wrote to a file, or a new one, which is in dispute: whether the
// wall clock is right is not known yet.
func Open(file string, o Options) (*Clock, error) {
	o = o.withDefaults()
	c := &Clock{o: o, file: file, at: o.Elapsed(),
		state: state{steady: time.UnixMilli(0), disputed: true, other: o.Wall().Round(0)}}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	saved, err := parse(data)
	if err != nil {
		o.Logger.Warn("the file of the clock cannot be read; what ended is deleted a day later",
			"file", file, "error", err)
		return c, nil
	}
	c.state = saved
	return c, nil
}

func parse(data []byte) (state, error) {
	var f fileState
	if err := json.Unmarshal(data, &f); err != nil {
		return state{}, err
	}
	if f.Version != fileVersion {
		return state{}, fmt.Errorf("version %d, this program knows %d", f.Version, fileVersion)
	}
	s := state{steady: time.UnixMilli(f.Steady)}
	if f.Other != 0 {
		s.disputed, s.other, s.stood = true, time.UnixMilli(f.Other), f.Stood
	}
	return s, nil
}

// Save writes the clock to its file, if it has one, from where the next process goes on.
func (c *Clock) Save() error {
	if c.file == "" {
		return nil
	}
	c.mu.Lock()
	c.readLocked()
	f := fileState{Version: fileVersion, Steady: c.state.steady.UnixMilli()}
	if c.state.disputed {
		f.Other, f.Stood = c.state.other.UnixMilli(), c.state.stood
	}
	c.mu.Unlock()
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return durable.Replace(c.o.Disk, c.file, data)
}
