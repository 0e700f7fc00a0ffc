package hashlog

import "github.com/kdedup/kdedup/internal/durable"

// unsynced makes files that are not synced, which is faster.
type unsynced struct{ durable.System }

func (d unsynced) Create(name string) (durable.File, error) {
	file, err := d.System.Create(name)
	return unsyncedFile{file}, err
}

func (d unsynced) Append(name string) (durable.File, error) {
	file, err := d.System.Append(name)
	return unsyncedFile{file}, err
}

func (unsynced) SyncDirectory(string) error { return nil }

type unsyncedFile struct{ durable.File }

func (unsyncedFile) Sync() error { return nil }
