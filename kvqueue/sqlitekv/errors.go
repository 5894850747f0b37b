package sqlitekv

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	sqlite "modernc.org/sqlite"

	"github.com/ambit-go/ambit/kvqueue"
)

// Primary codes of SQLite.
const (
	busy     = 5
	locked   = 6
	readOnly = 8
	ioFailed = 10
	corrupt  = 11
	full     = 13
	canOpen  = 14
	notADB   = 26
)

// is reports whether an error is one of SQLite with one of these primary codes.
func is(err error, codes ...int) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && slices.Contains(codes, e.Code()&0xff)
}

// said is an error of SQLite as callers get it: it says what to do.
func (f *file) said(err error) error {
	unsure := errors.As(err, new(*unsureError))
	switch {
	case err == nil || !errors.As(err, new(*sqlite.Error)):
		return err
	case is(err, full):
		err = fmt.Errorf("%w: make room on the disk of %s, and it goes on: %w", kvqueue.ErrNoSpace, f.path, err)
	case is(err, notADB):
		err = fmt.Errorf("sqlitekv: %s is not a file of SQLite: name another; kvq import reads the files of earlier versions of kvqueue: %w", f.path, err)
	case is(err, corrupt):
		err = fmt.Errorf("sqlitekv: %s is damaged: restore it, or save what sqlite3 %s .recover finds: %w", f.path, f.path, err)
	case is(err, readOnly, canOpen):
		err = fmt.Errorf("sqlitekv: %s cannot be written: this user needs the right to write to the file, to those beside it with -wal and -shm behind the name, and to the folder: %w", f.path, err)
	default:
		err = fmt.Errorf("sqlitekv: %s: %w", f.path, err)
	}
	if unsure {
		return fmt.Errorf("%w: %w", kvqueue.ErrUnknown, err)
	}
	return err
}

// unusable is the error of a path at which no file can be opened or made.
func unusable(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("sqlitekv: make the folder %s first: %w", filepath.Dir(path), err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("sqlitekv: this user may not read and write %s: %w", path, err)
	default:
		return fmt.Errorf("sqlitekv: %w", err)
	}
}
