package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ErrForeign says that a file is no store.
var ErrForeign = errors.New("it is a file of another program: name another one")

// Fresh reports whether a file is to be begun, because there is none or it is empty. It
// fails if path is something that cannot become a store.
func Fresh(path string) (bool, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	case info.IsDir():
		return false, errors.New("it is a folder: name a file in it")
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("it is no plain file (%v): name another one", info.Mode().Type())
	}
	return info.Size() == 0, nil
}

// Format says whether a program that knows formats up to known can use a file that says
// that it has the format text.
func Format(text string, known int) error {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return ErrForeign
	case n > known:
		return fmt.Errorf("it has format %d, and this program knows formats up to %d: use a newer program, as the one which has written it", n, known)
	}
	return nil
}

// A Damaged says what is wrong with a file.
type Damaged struct {
	Package string // what uses it
	Path    string
	Err     error
}

// Error says what is wrong with the file, and what to do about it.
func (e *Damaged) Error() string {
	return fmt.Sprintf("%s: %s is damaged: %v. Keep a copy of it. Restore it from a backup, or see what bbolt can save of it: "+
		"go run go.etcd.io/bbolt/cmd/bbolt@latest surgery", e.Package, e.Path, e.Err)
}

// Unwrap returns Err.
func (e *Damaged) Unwrap() error { return e.Err }

// Unusable adds to an error of opening a file what it is about and what to do. One that
// matches an error of damage is a [*Damaged].
func Unusable(pkg, path string, err error, damage ...error) error {
	is := func(target error) bool { return errors.Is(err, target) }
	why := ""
	switch {
	case errors.As(err, new(*Damaged)):
		return err
	case errors.As(err, new(*Panicked)), slices.ContainsFunc(damage, is):
		return &Damaged{pkg, path, err}
	case errors.Is(err, fs.ErrPermission):
		why = "this user may not read and write it: "
	case errors.Is(err, fs.ErrNotExist):
		why = "make the folder " + filepath.Dir(path) + " first: "
	case errors.Is(err, syscall.EROFS):
		why = "its file system is read-only, name a file in another one: "
	case Full(err):
		why = "the disk is full, make room and open it again: "
	}
	return fmt.Errorf("%s: %s cannot be used: %s%w", pkg, path, why, err)
}

// Full reports whether there is no room for what was to be written. Some errors of bbolt
// have only a text.
func Full(err error) bool {
	for _, number := range []syscall.Errno{syscall.ENOSPC, syscall.EFBIG, syscall.EDQUOT} {
		if errors.Is(err, number) || strings.HasSuffix(err.Error(), number.Error()) {
			return true
		}
	}
	return false
}
