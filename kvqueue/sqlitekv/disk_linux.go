package sqlitekv

import (
	"os"

	"golang.org/x/sys/unix"
)

// waitForDisk returns when the content of a file is on the disk.
func waitForDisk(f *os.File) (err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Fdatasync(int(f.Fd()))
	}
	return err
}
