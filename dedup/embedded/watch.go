package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

const watchEvery = 5 * time.Second

// stillThere looks whether the files that are open are those that the next start will find. Claims
// in a directory that was removed, or that another one has replaced, end with the process.
func (s *Store) stillThere(context.Context) (problem, err error) {
	now, err := os.Stat(s.lock.Path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the directory %s was removed or moved: claims in it would be lost with "+
			"this process; bring it back, or restart", s.path), nil
	case err != nil:
		return nil, err
	case !os.SameFile(s.locked, now):
		return fmt.Errorf("another directory is in the place of %s: claims would be lost with this "+
			"process; bring the one back that was there, or restart", s.path), nil
	}
	return nil, nil
}
