package filestore

import (
	"errors"
	"os"

	"go.etcd.io/bbolt"

	"github.com/ambit-go/ambit/internal/boltfile"
)

// check reads a whole file, and says what is wrong with its structure.
func check(path string, checked *boltfile.Checked) error {
	// It cannot be written while we have it open like this. bbolt looks at nothing but
	// its meta pages meanwhile.
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: boltfile.LockPatience, ReadOnly: true})
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err == nil {
		if err = boltfile.Check(f, db.Info().PageSize); err == nil {
			err = checked.Note(f)
		}
		err = errors.Join(err, f.Close())
	}
	return errors.Join(err, db.Close())
}
