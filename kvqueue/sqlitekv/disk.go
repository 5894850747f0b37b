package sqlitekv

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/ambit-go/ambit/kvqueue"
)

// A disk waits until what was written is on the disk. SQLite would wait while it has the file locked, and each process
// for the disk's answers to all others. So SQLite only writes to its log, which is the file with -wal behind the name,
// and this waits for the log when the file is free again: for all that is in it then, whoever has written it.
//
// What others have written may be seen before it is on the disk. Whatever rests on it is either written later, and so is
// not on the disk before it, or is an answer to a step, which waits for the disk even if it writes nothing.
type disk struct {
	sync   func(log *os.File) error // nil: nobody waits, see NoSync
	log    *os.File                 // nil: it was not needed yet
	failed atomic.Bool              // the log, or a part of it, may not be on the disk
	why    error                    // of the last that has failed
}

// settle waits until all that is in the log is on the disk.
func (d *disk) settle(path string, l *link) error {
	if d.sync == nil {
		return nil
	}
	if !d.failed.Load() {
		if d.why = d.wait(path); d.why == nil {
			return nil
		}
		d.failed.Store(true)
	}
	// A system says once that it could not write something, and then it may take that for written. So all that is in the
	// log is written to the file itself, and the log begins anew.
	busy := true
	err := l.query("PRAGMA wal_checkpoint(TRUNCATE)", nil, func(row []driver.Value) bool {
		busy = row[0] != int64(0) // somebody reads
		return false
	})
	if err == nil && !busy {
		d.failed.Store(false)
		return nil
	}
	return fmt.Errorf("%w: sqlitekv: %s: what was written last may not be on the disk, and each call tries again to bring it there: %w",
		kvqueue.ErrUnknown, path, errors.Join(d.why, err))
}

func (d *disk) wait(path string) (err error) {
	if d.log == nil { // SQLite has just written to it, and keeps it as long as it has the file open
		if d.log, err = os.OpenFile(path+"-wal", os.O_RDWR, 0); err != nil {
			return err
		}
	}
	return d.sync(d.log)
}

func (d *disk) close() error {
	if d.log == nil {
		return nil
	}
	return d.log.Close()
}
