package testkit

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// Disk makes files whose writes and syncs can be made to fail or to wait.
type Disk struct {
	Full    atomic.Bool   // no file is made, and no write succeeds
	BadSync atomic.Bool   // no sync succeeds
	Syncing chan struct{} // from Hold on, has something for each sync that began

	held     atomic.Bool
	released chan struct{}
	release  sync.Once
}

// NewDisk returns a disk that works.
func NewDisk() *Disk { return &Disk{Syncing: make(chan struct{}, 1000), released: make(chan struct{})} }

// Hold lets syncs wait for Release.
func (d *Disk) Hold() { d.held.Store(true) }

// Release lets the syncs go on that wait, and later ones. It may be called twice.
func (d *Disk) Release() { d.release.Do(func() { close(d.released) }) }

// DiskFile is a file of a Disk.
type DiskFile struct {
	*os.File
	disk *Disk
}

// Create makes a file that does not exist.
func (d *Disk) Create(name string) (*DiskFile, error) {
	if d.Full.Load() {
		return nil, syscall.ENOSPC
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return &DiskFile{file, d}, err
}

func (f *DiskFile) Write(p []byte) (int, error) {
	if f.disk.Full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(p)
}

// Sync is os.File.Sync, unless the disk is told otherwise.
func (f *DiskFile) Sync() error {
	if f.disk.BadSync.Load() {
		return syscall.EIO
	}
	if f.disk.held.Load() {
		f.disk.Syncing <- struct{}{}
		<-f.disk.released
	}
	return f.File.Sync()
}
