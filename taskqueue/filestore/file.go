package filestore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/ambit-go/ambit/internal/boltfile"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/engine"
)

var (
	bucket    = []byte("taskqueue")
	about     = []byte("about")
	formatKey = []byte("format")
)

// format is the version of what is stored.
const format = 1

// errTaken says that another process has the file.
var errTaken = errors.New("another process has it")

// openFile opens the file itself. broken is called when it could not be written. The
// error is errTaken, or says what to do.
func openFile(path string, checked *boltfile.Checked, broken func(taskqueue.Store)) (taskqueue.Store, error) {
	bolt, file, err := openBolt(path, checked)
	if err == nil {
		if err = prepare(bolt); err == nil {
			d := newDB(bolt, file)
			var e *engine.Engine
			if e, err = engine.Open(context.Background(), d, nil); err == nil {
				d.told = func() { broken(e) }
				return e, nil
			}
		}
		if p := new(boltfile.Panicked); errors.As(err, &p) {
			boltfile.Unlock(file) // bbolt may have locked itself
		} else {
			err = errors.Join(err, bolt.Close())
		}
	}
	return nil, explained(path, err)
}

// explained adds to an error what it is about and what to do.
func explained(path string, err error) error {
	if err == errTaken {
		return err
	}
	return boltfile.Unusable("taskqueue", path, err, bolterrors.ErrInvalid, bolterrors.ErrChecksum, bolterrors.ErrVersionMismatch)
}

// openBolt checks, opens and locks the file, and makes it if there is none.
func openBolt(path string, checked *boltfile.Checked) (bolt *bbolt.DB, file *os.File, err error) {
	fresh, err := boltfile.Fresh(path)
	if err != nil {
		return nil, nil, err
	}
	patience := boltfile.LockPatience
	if !fresh && !checked.Is(path) {
		begin := time.Now()
		if err = check(path, checked); err != nil && !expected(err) {
			err = &boltfile.Damaged{Package: "taskqueue", Path: path, Err: err}
		}
		patience = boltfile.PatienceAfterCheck(begin)
	}
	if err == nil {
		defer boltfile.Guard(&err, func() { boltfile.Unlock(file) })()
		bolt, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout:        patience,
			NoFreelistSync: true,
			FreelistType:   bbolt.FreelistMapType,
			OpenFile: func(path string, flag int, mode fs.FileMode) (_ *os.File, err error) {
				file, err = os.OpenFile(path, flag, mode)
				return file, err
			},
		})
	}
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, nil, errTaken
	case err != nil && fresh && file != nil: // a full disk has kept a part of what a new file begins with
		return nil, nil, errors.Join(err, os.Truncate(path, 0))
	case err != nil:
		return nil, nil, err
	case fresh:
		if err := boltfile.SyncFolder(filepath.Dir(path)); err != nil {
			return nil, nil, errors.Join(err, bolt.Close())
		}
	}
	return bolt, file, nil
}

// expected reports whether an error of check is not about what is in the file.
func expected(err error) bool {
	return errors.Is(err, bolterrors.ErrTimeout) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// prepare makes what a new file lacks.
func prepare(bolt *bbolt.DB) (err error) {
	defer boltfile.Guard(&err, func() {})()
	known := false
	err = bolt.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(about)
		if known = b != nil && tx.Bucket(bucket) != nil; known {
			return boltfile.Format(string(b.Get(formatKey)), format)
		}
		if other, _ := tx.Cursor().First(); other != nil {
			return boltfile.ErrForeign
		}
		return nil
	})
	if known || err != nil {
		return err
	}
	return bolt.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket(about)
		if err == nil {
			err = b.Put(formatKey, []byte(strconv.Itoa(format)))
		}
		if err == nil {
			_, err = tx.CreateBucket(bucket)
		}
		return err
	})
}
