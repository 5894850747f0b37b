package filestore

import (
	"context"
	"errors"
	"fmt"
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

// lockPatience is how long the lock of the file is waited for.
const lockPatience = 50 * time.Millisecond

var (
	// errTaken says that another process has the file.
	errTaken   = errors.New("another process has it")
	errForeign = errors.New("it is a file of another program: name another one")
)

// openFile opens the file itself. broken is called when it could not be written. The
// error is errTaken, or says what to do.
func openFile(path string, broken func(taskqueue.Store)) (taskqueue.Store, error) {
	bolt, file, err := openBolt(path)
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
	var damaged *damagedError
	p := new(boltfile.Panicked)
	why := ""
	switch {
	case err == errTaken, errors.As(err, &damaged):
		return err
	case errors.As(err, &p), errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return &damagedError{path, err}
	case errors.Is(err, fs.ErrPermission):
		why = "this user may not read and write it: "
	case errors.Is(err, fs.ErrNotExist):
		why = "make the folder " + filepath.Dir(path) + " first: "
	case errors.Is(err, syscall.EROFS):
		why = "its file system is read-only, name a file in another one: "
	case errors.Is(err, syscall.ENOSPC):
		why = "the disk is full, make room and open it again: "
	}
	return fmt.Errorf("taskqueue: %s cannot be used: %s%w", path, why, err)
}

// openBolt checks, opens and locks the file, and makes it if there is none.
func openBolt(path string) (bolt *bbolt.DB, file *os.File, err error) {
	info, err := os.Stat(path)
	fresh := errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
	switch {
	case err != nil && !fresh:
		return nil, nil, err
	case err == nil && info.IsDir():
		return nil, nil, errors.New("it is a folder: name a file in it")
	case err == nil && !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("it is no plain file (%v): name another one", info.Mode().Type())
	}
	if !fresh {
		if err = check(path); err != nil && !expected(err) {
			err = &damagedError{path, err}
		}
	} else {
		err = nil
	}
	if err == nil {
		defer boltfile.Guard(&err, func() { boltfile.Unlock(file) })()
		bolt, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout:        lockPatience,
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
		if known = b != nil; known {
			return checkFormat(string(b.Get(formatKey)))
		}
		if other, _ := tx.Cursor().First(); other != nil {
			return errForeign
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

func checkFormat(text string) error {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return errForeign
	case n > format:
		return fmt.Errorf("it has format %d, and this program knows formats up to %d: use a newer program, as the one which has written it", n, format)
	}
	return nil
}
