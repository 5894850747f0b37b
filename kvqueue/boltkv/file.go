package boltkv

import (
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
	"github.com/ambit-go/ambit/kvqueue"
)

var (
	bucket    = []byte("kvqueue")
	about     = []byte("about")
	formatKey = []byte("format")
)

// format is the version of what is stored.
const format = 1

// openFile opens the file. Its error says what to do.
func openFile(path string, noSync bool, checked *boltfile.Checked) (*bbolt.DB, *os.File, error) {
	bolt, file, err := openBolt(path, noSync, checked)
	if err != nil {
		return nil, nil, explained(path, err)
	}
	if err = prepare(bolt); err == nil {
		return bolt, file, nil
	}
	if errors.As(err, new(*boltfile.Panicked)) {
		boltfile.Unlock(file) // bbolt may have locked itself
	} else {
		err = errors.Join(err, bolt.Close())
	}
	return nil, nil, explained(path, err)
}

// openBolt checks, opens and locks the file, and makes it if there is none.
func openBolt(path string, noSync bool, checked *boltfile.Checked) (bolt *bbolt.DB, file *os.File, err error) {
	fresh, err := boltfile.Fresh(path)
	if err != nil {
		return nil, nil, err
	}
	patience := boltfile.LockPatience
	if !fresh && !checked.Is(path) {
		begin := time.Now()
		if err := check(path, checked); err != nil {
			return nil, nil, err
		}
		patience = boltfile.PatienceAfterCheck(begin)
	}
	defer boltfile.Guard(&err, func() { boltfile.Unlock(file) })()
	bolt, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:        patience,
		NoSync:         noSync,
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
		OpenFile: func(path string, flag int, mode fs.FileMode) (_ *os.File, err error) {
			file, err = os.OpenFile(path, flag, mode)
			return file, err
		},
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, nil, ErrTaken
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

// check reads a whole file, and says what is wrong with its structure.
func check(path string, checked *boltfile.Checked) error {
	// It cannot be written while we have it open like this. bbolt looks at nothing but
	// its meta pages meanwhile.
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: boltfile.LockPatience, ReadOnly: true})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return ErrTaken
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return err
	case err != nil:
		return damaged(path, err)
	}
	f, err := os.Open(path)
	if err == nil {
		if err = boltfile.Check(f, db.Info().PageSize); err != nil {
			err = damaged(path, err)
		} else {
			err = checked.Note(f)
		}
		err = errors.Join(err, f.Close())
	}
	return errors.Join(err, db.Close())
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

// explained adds to an error of opening what it is about and what to do.
func explained(path string, err error) error {
	if errors.Is(err, ErrTaken) {
		return fmt.Errorf("%w (the file is %s)", ErrTaken, path)
	}
	return boltfile.Unusable("boltkv", path, err, bolterrors.ErrInvalid, bolterrors.ErrChecksum, bolterrors.ErrVersionMismatch)
}

func damaged(path string, err error) error {
	return &boltfile.Damaged{Package: "boltkv", Path: path, Err: err}
}

// outcome is the error of a transaction as callers get it. A full disk leaves the file as it
// was. After any other failure of a write nobody knows what the disk has: the system may show
// pages that it has lost.
func (t *tree) outcome(err error, wrote bool) error {
	path := t.bolt.Path()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return errClosed
	case errors.As(err, new(*boltfile.Panicked)):
		err = damaged(path, err)
	case wrote && boltfile.Full(err) && !boltfile.SyncFailed(err):
		return fmt.Errorf("%w: make room on the disk of %s, and it goes on: %w", kvqueue.ErrNoSpace, path, err)
	default:
		err = fmt.Errorf("boltkv: %s could not be written, and is not used any more until it is opened again; what was acknowledged is in it: %w", path, err)
	}
	_ = t.broken(err)
	if wrote {
		return fmt.Errorf("%w: %w", kvqueue.ErrUnknown, err)
	}
	return err
}
