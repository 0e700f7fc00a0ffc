package hashlog

import "github.com/kdedup/kdedup/internal/testkit"

// unsynced makes files that are not synced, which is faster.
func unsynced(name string) (File, error) {
	file, err := (Options{}).withDefaults().Create(name)
	return unsyncedFile{file}, err
}

type unsyncedFile struct{ File }

func (unsyncedFile) Sync() error { return nil }

// onDisk lets a log make its files there.
func onDisk(d *testkit.Disk) func(string) (File, error) {
	return func(name string) (File, error) { return d.Create(name) }
}
