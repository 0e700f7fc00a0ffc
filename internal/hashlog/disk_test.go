package hashlog

import (
	"sync/atomic"
	"syscall"
)

// unsynced makes files that are not synced, which is faster.
func unsynced(name string) (File, error) {
	file, err := (Options{}).withDefaults().Create(name)
	return unsyncedFile{file}, err
}

type unsyncedFile struct{ File }

func (unsyncedFile) Sync() error { return nil }

// disk makes files whose writes and syncs can be made to fail or to wait.
type disk struct {
	full    atomic.Bool
	badSync atomic.Bool
	syncing chan struct{} // unless nil, a sync sends here and then waits for release
	release chan struct{}
}

type diskFile struct {
	File
	disk *disk
}

func (d *disk) create(name string) (File, error) {
	if d.full.Load() {
		return nil, syscall.ENOSPC
	}
	file, err := (Options{}).withDefaults().Create(name)
	return &diskFile{file, d}, err
}

func (f *diskFile) Write(p []byte) (int, error) {
	if f.disk.full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(p)
}

func (f *diskFile) Sync() error {
	if f.disk.badSync.Load() {
		return syscall.EIO
	}
	if f.disk.syncing != nil {
		f.disk.syncing <- struct{}{}
		<-f.disk.release
	}
	return f.File.Sync()
}
