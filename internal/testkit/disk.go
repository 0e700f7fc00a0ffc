package testkit

import (
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/kdedup/kdedup/internal/durable"
)

// Disk is a durable.Disk that makes files whose writes and syncs can be made to fail or to wait.
type Disk struct {
	durable.System

	Full    atomic.Bool   // no file is made, and no write succeeds
	BadSync atomic.Bool   // no sync succeeds
	Syncing chan struct{} // from Hold on, has something for each sync that began

	held     atomic.Bool
	released chan struct{}
	release  sync.Once
}

// NewDisk returns a disk that works.
func NewDisk() *Disk {
	return &Disk{Syncing: make(chan struct{}, 1000), released: make(chan struct{})}
}

// Hold lets syncs wait for Release.
func (d *Disk) Hold() { d.held.Store(true) }

// Release lets the syncs go on that wait, and later ones. It may be called twice.
func (d *Disk) Release() { d.release.Do(func() { close(d.released) }) }

// diskFile is a file of a Disk.
type diskFile struct {
	durable.File
	disk *Disk
}

// Create implements durable.Disk.
func (d *Disk) Create(name string) (durable.File, error) {
	if d.Full.Load() {
		return nil, syscall.ENOSPC
	}
	file, err := d.System.Create(name)
	if err != nil {
		return nil, err
	}
	return &diskFile{file, d}, nil
}

// Append implements durable.Disk.
func (d *Disk) Append(name string) (durable.File, error) {
	file, err := d.System.Append(name)
	if err != nil {
		return nil, err
	}
	return &diskFile{file, d}, nil
}

func (f *diskFile) Write(p []byte) (int, error) {
	if f.disk.Full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(p)
}

// Sync implements durable.File, unless the disk is told otherwise.
func (f *diskFile) Sync() error {
	if f.disk.BadSync.Load() {
		return syscall.EIO
	}
	if f.disk.held.Load() {
		f.disk.Syncing <- struct{}{}
		<-f.disk.released
	}
	return f.File.Sync()
}
