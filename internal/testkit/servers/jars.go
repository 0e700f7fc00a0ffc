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

//go:embed kafka cassandra registry mirror serializers debezium python clouds
var embedded embed.FS

// completeMarker is the last file of a complete directory of the cache and holds its order, as a
// pom. Without it the directory is what a broken-off download left, with another order it is out of
// date.
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
	err = once(ctx, dir, pom, func() error { return download(ctx, name, pom, dir) })
	if err != nil {
		return "", fmt.Errorf("jars of %s %s in %s: %w", name, version, dir, err)
	}
	return dir, nil
}

// once has the directory filled, unless it is complete and was made for the same order.
func once(ctx context.Context, dir string, order []byte, fill func() error) error {
	return underLock(ctx, dir+".lock", func() error {
		marker := filepath.Join(dir, completeMarker)
		if made, err := os.ReadFile(marker); err == nil && bytes.Equal(made, order) {
			return nil
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := fill(); err != nil {
			return err
		}
		return os.WriteFile(marker, order, 0o644)
	})
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
func download(ctx context.Context, name string, pom []byte, dir string) error {
	maven, err := FindMaven()
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(file, pom, 0o644); err != nil {
		return err
	}
	goal := "dependency:copy-dependencies"
	if name == "registry" {
		goal = "dependency:unpack"
	}
	return runTool(ctx, exec.Command(maven, "-q", "-B", "-f", file, goal, "-DoutputDirectory="+dir))
}

// runTool runs a program to its end. An error has its output.
func runTool(ctx context.Context, cmd *exec.Cmd) error {
	if out, err := runProcess(ctx, cmd); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}
