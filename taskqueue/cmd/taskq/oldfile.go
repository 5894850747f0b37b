package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/boltfile"
)

// An oldFile reads what filestore has left: a bbolt file with one bucket of keys and values. The
// first byte of a key says what it is about, and the name of the queue and a zero byte follow.
type oldFile struct{ db *bbolt.DB }

const (
	oldFormat = 1
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
func openOldFile(path string) (_ *oldFile, err error) {
	defer func() {
		if errors.Is(err, bolterrors.ErrTimeout) {
			err = fmt.Errorf("a process has %s open: end the workers of the old version first", path)
		} else if err != nil {
			err = boltfile.Unusable("taskqueue", path, err, bolterrors.ErrInvalid, bolterrors.ErrChecksum, bolterrors.ErrVersionMismatch)
		}
	}()
	if fresh, err := boltfile.Fresh(path); err != nil {
		return nil, err
	} else if fresh {
		return nil, errors.New("there is nothing in it")
	}
	defer boltfile.Guard(&err, func() {})()
	db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return nil, err
	}
	if err := sound(db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &oldFile{db}, nil
}

// sound looks through the pages of a file, and says if it is none of filestore.
func sound(db *bbolt.DB) error {
	f, err := os.Open(db.Path())
	if err != nil {
		return err
	}
	if err := errors.Join(boltfile.Check(f, db.Info().PageSize), f.Close()); err != nil {
		return &boltfile.Damaged{Package: "taskqueue", Path: db.Path(), Err: err}
	}
	return db.View(func(tx *bbolt.Tx) error {
		about := tx.Bucket([]byte("about"))
		if about == nil || tx.Bucket([]byte("taskqueue")) == nil {
			return boltfile.ErrForeign
		}
		return boltfile.Format(string(about.Get([]byte("format"))), oldFormat)
	})
}

// each calls f with what is stored under the keys of a kind, until f fails.
func (o *oldFile) each(kind byte, f func(queue string, value []byte) error) error {
	return o.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte("taskqueue")).Cursor()
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
