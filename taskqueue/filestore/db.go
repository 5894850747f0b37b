package filestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/ambit-go/ambit/internal/boltfile"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/engine"
	"github.com/ambit-go/ambit/taskqueue/internal/group"
)

// maxSteps bounds the steps of one transaction.
const maxSteps = 1024

// db makes steps durable in groups, one transaction each.
type db struct {
	bolt  *bbolt.DB
	file  *os.File // of bolt
	group *group.Group[*step]
	told  func() // called once, when a write has failed and the file may be opened again; nil: nobody is told

	mu     sync.Mutex
	failed error // set once: an error of the disk, or that db was closed
	torn   bool  // bbolt has panicked: it may have locked itself
}

type step struct {
	f   func(engine.Tx) error
	err error
}

func newDB(bolt *bbolt.DB, file *os.File) *db {
	d := &db{bolt: bolt, file: file}
	d.group = group.New(maxSteps, 1, nil, d.write)
	return d
}

// Do is a method of engine.DB. A step that has been taken into a group is carried
// out, also if ctx ends meanwhile: one that waits for its group is not.
func (d *db) Do(ctx context.Context, f func(engine.Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s := &step{f: f}
	if err := d.group.Do(ctx, s); err != nil {
		return err
	}
	return s.err
}

// write carries the steps out in one transaction. A step that fails has written
// nothing, and the others are not touched by that. An error of the file closes the
// store: what is in memory may be ahead of it.
func (d *db) write(steps []*step) error {
	if err := d.broken(nil); err != nil {
		return err
	}
	err := d.commit(steps)
	if err == nil || errors.Is(err, errUnchanged) {
		return nil
	}
	path := d.bolt.Path()
	if boltfile.SyncFailed(err) {
		// What the disk has is not known: the system may show pages that it has lost.
		return d.broken(fmt.Errorf("the disk has failed to keep what was written, %s stays closed until this process ends: %w: %w", path, taskqueue.ErrClosed, err))
	}
	err = d.broken(fmt.Errorf("taskqueue: the file could not be written, and will be opened again; what was acknowledged is in it: %w", explained(path, err)))
	if d.told != nil {
		d.told()
	}
	return err
}

// errUnchanged has a transaction that has written nothing be rolled back, which costs no
// sync of the disk.
var errUnchanged = errors.New("nothing was written")

func (d *db) commit(steps []*step) (err error) {
	defer boltfile.Guard(&err, d.tear)()
	return d.bolt.Update(func(tx *bbolt.Tx) error {
		t := &boltTx{b: tx.Bucket(bucket)}
		for _, s := range steps {
			if s.err = s.f(t); t.err != nil {
				return t.err
			}
		}
		if !t.wrote {
			return errUnchanged
		}
		return nil
	})
}

// tear notes that bbolt has panicked.
func (d *db) tear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.torn = true
}

// broken returns why nothing can be written any more: err, if it is the first reason.
func (d *db) broken(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil {
		d.failed = err
	}
	return d.failed
}

// Close waits for the group that is being written.
func (d *db) Close() error {
	_ = d.broken(taskqueue.ErrClosed)
	d.group.Idle()
	d.mu.Lock()
	torn := d.torn
	d.mu.Unlock()
	if torn { // its mapping stays until the program ends, but others may have the file
		boltfile.Unlock(d.file)
		return nil
	}
	return d.bolt.Close()
}

// boltTx is an engine.Tx. An error of the file ends the whole group.
type boltTx struct {
	b     *bbolt.Bucket
	wrote bool
	err   error
}

func (t *boltTx) Get(key []byte) []byte { return t.b.Get(key) }

func (t *boltTx) Put(key, value []byte) { t.note(t.b.Put(key, value)) }
func (t *boltTx) Delete(key []byte)     { t.note(t.b.Delete(key)) }

func (t *boltTx) note(err error) {
	t.wrote = true
	if t.err == nil {
		t.err = err
	}
}

func (t *boltTx) Scan(from []byte, f func(key, value []byte) bool) {
	c := t.b.Cursor()
	for k, v := c.Seek(from); k != nil && f(k, v); k, v = c.Next() {
	}
}

func (t *boltTx) ScanBack(before []byte, f func(key, value []byte) bool) {
	c := t.b.Cursor()
	k, _ := c.Seek(before)
	var v []byte
	if k == nil {
		k, v = c.Last()
	} else {
		k, v = c.Prev()
	}
	for ; k != nil && f(k, v); k, v = c.Prev() {
	}
}
