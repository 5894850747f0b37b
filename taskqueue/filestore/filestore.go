// Package filestore is a taskqueue.Store in a file, for one machine: no server is
// needed. What was acknowledged is on the disk.
//
// One process has the file at a time.
package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/engine"
)

var bucket = []byte("taskqueue")

// format is the version of what is stored.
const format = "1"

var formatKey = []byte("format")

// Open opens the store in the file, which is made if there is none. It fails if
// another process has it, if the file is damaged, or if a newer version wrote it.
func Open(path string) (taskqueue.Store, error) {
	bolt, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:        100 * time.Millisecond,
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("taskqueue: %s: another process has this file: end it, or use another file", path)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("taskqueue: %w", err)
	case err != nil:
		return nil, fmt.Errorf("taskqueue: %s cannot be opened; it may be damaged: %w", path, err)
	}
	d := newDB(bolt)
	if err := d.prepare(path); err != nil {
		return nil, errors.Join(err, bolt.Close())
	}
	e, err := engine.Open(context.Background(), d, nil)
	if err != nil {
		return nil, errors.Join(err, bolt.Close())
	}
	return e, nil
}

// prepare makes what an empty file lacks.
func (d *db) prepare(path string) error {
	return d.bolt.Update(func(tx *bbolt.Tx) error {
		if v := tx.Bucket([]byte("about")); v != nil {
			if got := string(v.Get(formatKey)); got != format {
				return fmt.Errorf("taskqueue: %s has format %q, and this program knows format %s: use a newer program", path, got, format)
			}
			return nil
		}
		about, err := tx.CreateBucket([]byte("about"))
		if err == nil {
			err = about.Put(formatKey, []byte(format))
		}
		if err == nil {
			_, err = tx.CreateBucket(bucket)
		}
		return err
	})
}
