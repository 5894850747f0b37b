package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/ambit-go/ambit/taskqueue"
)

// An oldFile reads what filestore has left: a bbolt file with one bucket of keys and values. The
// first byte of a key says what it is about, and the name of the queue and a zero byte follow.
type oldFile struct{ db *bbolt.DB }

const (
	oldFormat = "1"
	oldQueue  = 'q' // queue: an oldSettings
	oldTask   = 't' // queue, id: an oldRecord
)

type oldSettings struct {
	Settings taskqueue.Settings `json:"settings"`
}

// An oldRecord is a task as it was stored.
type oldRecord struct {
	taskqueue.Info
	HoldsKey bool `json:"holds"` // it is the holder of its unique key
	Lasts    bool `json:"lasts"` // it does not expire any more
}

// openOldFile opens a file to be read. Nobody can write to it until it is closed.
func openOldFile(path string) (*oldFile, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.Size() == 0 {
		return nil, fmt.Errorf("there is nothing in %s", path)
	}
	db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("a process has %s open: end the workers of the old version first", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	return &oldFile{db}, nil
}

// view has f read the file. bbolt maps it, and panics when it finds something that cannot be, or that
// is not there any more: then the file is damaged.
func (o *oldFile) view(f func(tasks *bbolt.Bucket) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s is damaged: %v. Keep a copy of it. Restore it from a backup, or see what bbolt can save of it: "+
				"go run go.etcd.io/bbolt/cmd/bbolt@latest surgery", o.db.Path(), p)
		}
	}()
	return o.db.View(func(tx *bbolt.Tx) error {
		about, tasks := tx.Bucket([]byte("about")), tx.Bucket([]byte("taskqueue"))
		if about == nil || tasks == nil || string(about.Get([]byte("format"))) != oldFormat {
			return fmt.Errorf("%s is a file of another program: name another one", o.db.Path())
		}
		if info, err := os.Stat(o.db.Path()); err != nil || info.Size() < tx.Size() {
			return fmt.Errorf("the end of %s is missing: it had %d bytes. Restore it from a backup", o.db.Path(), tx.Size())
		}
		return f(tasks)
	})
}

// each calls f with what is stored under the keys of a kind, until f fails.
func (o *oldFile) each(kind byte, f func(queue string, value []byte) error) error {
	return o.view(func(tasks *bbolt.Bucket) error {
		c := tasks.Cursor()
		for k, v := c.Seek([]byte{kind}); len(k) > 0 && k[0] == kind; k, v = c.Next() {
			queue, _, _ := strings.Cut(string(k[1:]), "\x00")
			if err := f(queue, v); err != nil {
				return fmt.Errorf("queue %s: %w", queue, err)
			}
		}
		return nil
	})
}

// settings calls f with the settings of each queue.
func (o *oldFile) settings(f func(queue string, s taskqueue.Settings) error) error {
	return o.each(oldQueue, func(queue string, value []byte) error {
		var s oldSettings
		if err := json.Unmarshal(value, &s); err != nil {
			return err
		}
		return f(queue, s.Settings)
	})
}

// tasks calls f with each task and its state.
func (o *oldFile) tasks(f func(t taskqueue.Task, s taskqueue.State) error) error {
	return o.each(oldTask, func(_ string, value []byte) error {
		var r oldRecord
		if err := json.Unmarshal(value, &r); err != nil {
			return err
		}
		return f(r.again(), r.State)
	})
}

// again is the task to be enqueued once more. It is due when it was.
func (r *oldRecord) again() taskqueue.Task {
	t := r.Task
	t.Delay, t.RunAt = 0, r.DueAt
	if !r.HoldsKey && !r.State.Ended() {
		t.UniqueKey = "" // given up when it started
	}
	if r.Lasts {
		t.ExpiresAt = time.Time{}
	}
	return t
}
