package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/internal/boltfile"
)

// The file is opened again when a write has failed, and not when the disk has.
func TestAFailedSyncIsNotAFailedWrite(t *testing.T) {
	for _, err := range []error{
		syscall.EIO, // as fdatasync says it
		&fs.PathError{Op: "sync", Path: "tasks", Err: syscall.EIO},
		errors.New("file sync error: input/output error"),
	} {
		assert.True(t, boltfile.SyncFailed(err), "%v", err)
	}
	for _, err := range []error{
		&fs.PathError{Op: "write", Path: "tasks", Err: syscall.ENOSPC},
		fmt.Errorf("file resize error: %s", &fs.PathError{Op: "truncate", Path: "tasks", Err: syscall.EFBIG}),
	} {
		assert.False(t, boltfile.SyncFailed(err), "%v", err)
	}
}
