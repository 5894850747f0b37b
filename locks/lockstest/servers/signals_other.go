//go:build !unix

package servers

import (
	"errors"
	"os"
	"syscall"
)

// Where there are no signals a server is ended the hard way, and pausing one does
// nothing.
var (
	terminate = os.Kill
	pause     = os.Interrupt
	resume    = os.Interrupt
)

func runAs(string) (as *syscall.SysProcAttr, uid, gid int, err error) {
	return nil, 0, 0, errors.New("this system has no such users")
}
