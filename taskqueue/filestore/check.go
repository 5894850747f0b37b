package filestore

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"

	"github.com/ambit-go/ambit/internal/boltfile"
)

// A damagedError says what is wrong with a file.
type damagedError struct {
	path string
	why  error
}

func (e *damagedError) Error() string {
	return fmt.Sprintf("taskqueue: %s is damaged: %v. Keep a copy of it. Restore it from a backup, or see what bbolt can save of it: "+
		"go run go.etcd.io/bbolt/cmd/bbolt@latest surgery", e.path, e.why)
}

func (e *damagedError) Unwrap() error { return e.why }

// check reads a whole file, and says what is wrong with its structure.
func check(path string) error {
	// It cannot be written while we have it open like this. bbolt looks at nothing but
	// its meta pages meanwhile.
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockPatience, ReadOnly: true})
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err == nil {
		err = errors.Join(boltfile.Check(f, db.Info().PageSize), f.Close())
	}
	return errors.Join(err, db.Close())
}
