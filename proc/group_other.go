//go:build unix && !linux

package proc

import (
	"os"
	"syscall"
)

// A handle would be a way to a group that does not go by its number. There is
// none here.
type handle struct{}

func (handle) send(syscall.Signal) (err error, ok bool) { return nil, false }

func (handle) forget() {}

// groupOf returns the group of which leader is the first process.
func groupOf(leader *os.Process) group { return group{id: leader.Pid} }

// buried reports whether all of the group are dead and wait for their parents.
// Nobody can tell here.
func (g *group) buried() bool { return false }
