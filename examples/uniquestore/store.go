package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kdedup/kdedup/idempotency"
)

// uniqueStore keeps each content once. Its objects are files in a directory, under IDs of its own;
// the executor knows which object a checksum belongs to.
type uniqueStore struct {
	once  *idempotency.Executor
	write func(id string, content []byte) error
}

func newUniqueStore(directory string, once *idempotency.Executor) *uniqueStore {
	return &uniqueStore{once, func(id string, content []byte) error {
		return writeObject(directory, id, content)
	}}
}

// put returns the ID of the object with this content, which is new or was there. Of many puts at
// once, one writes the object, and the others wait for its ID.
//
// The object is durable before its checksum leads to it. So whenever the process dies, no checksum
// points to nothing: either the key is completed, and its object is there; or it is not, and a
// later put writes the object again, under another ID, when the lease is over. What the first one
// may have left is an object whose ID nobody was told.
func (s *uniqueStore) put(ctx context.Context, content []byte) (id string, err error) {
	checksum := idempotency.HashOf(content)
	key := idempotency.Key{Namespace: "objects", ID: hex.EncodeToString(checksum[:])}
	result, err := s.once.Execute(ctx, key, checksum, func(context.Context) ([]byte, error) {
		fresh := rand.Text()
		if err := s.write(fresh, content); err != nil {
			return nil, err
		}
		return []byte(fresh), nil
	})
	if err != nil {
		return "", fmt.Errorf("put an object of %d bytes: %w", len(content), err)
	}
	return string(result.Response), nil
}

// writeObject returns when the object is durable, and its name in the directory too.
func writeObject(directory, id string, content []byte) error {
	file, err := os.OpenFile(filepath.Join(directory, id), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	dir, err := os.Open(directory)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func readObject(directory, id string) ([]byte, error) {
	root, err := os.OpenRoot(directory) // an ID is no path
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(id)
}
