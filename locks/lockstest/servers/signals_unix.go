//go:build unix

package servers

import (
	"os/user"
	"strconv"
	"syscall"
)

const (
	terminate = syscall.SIGTERM
	pause     = syscall.SIGSTOP
	resume    = syscall.SIGCONT
)

// runAs returns what has a process run as a user.
func runAs(name string) (as *syscall.SysProcAttr, uid, gid int, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, 0, 0, err
	}
	uid, err = strconv.Atoi(u.Uid)
	if err != nil {
		return nil, 0, 0, err
	}
	gid, err = strconv.Atoi(u.Gid)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, uid, gid, err
}
