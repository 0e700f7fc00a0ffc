package servers

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

//go:embed kafka cassandra
var embedded embed.FS

// completeMarker is the last file of a complete jar directory and holds its pom. Without it the
// directory is what a broken-off download left, with another pom it is out of date.
const completeMarker = ".complete"

// lockRetry is how often a busy cache lock is tried again.
const lockRetry = 200 * time.Millisecond

// jars returns the directory with the server's jars and downloads them first if need be. Other
// processes may do the same at the same time.
func jars(ctx context.Context, name, version string) (string, error) {
	root, err := cacheRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, name+"-"+version)
	pom, err := pomOf(name, version)
	if err != nil {
		return "", err
	}
	err = underLock(ctx, dir+".lock", func() error {
		if marker, err := os.ReadFile(filepath.Join(dir, completeMarker)); err == nil &&
			bytes.Equal(marker, pom) {
			return nil
		}
		return download(ctx, pom, dir)
	})
	if err != nil {
		return "", fmt.Errorf("jars of %s %s in %s: %w", name, version, dir, err)
	}
	return dir, nil
}

func cacheRoot() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory: %w", err)
	}
	root := filepath.Join(cache, "kdedup", "servers")
	return root, os.MkdirAll(root, 0o755)
}

// underLock runs f while this process alone holds the lock file. The system frees the lock when
// its holder dies.
func underLock(ctx context.Context, path string, f func() error) error {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // frees it
	tick := time.NewTicker(lockRetry)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f()
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another process holds %s: %w", path, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// download fills dir with what the server's pom.xml depends on.
func download(ctx context.Context, pom []byte, dir string) error {
	maven, err := FindMaven()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	file := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(file, pom, 0o644); err != nil {
		return err
	}
	cmd := exec.Command(maven, "-q", "-B", "-f", file, "dependency:copy-dependencies",
		"-DoutputDirectory="+dir)
	if out, err := runProcess(ctx, cmd); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return os.WriteFile(filepath.Join(dir, completeMarker), pom, 0o644)
}
