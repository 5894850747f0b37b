//go:build unix

package proc

import (
	"errors"
	"syscall"
)

// A group is a process group, known by the id of its first process. The system
// gives an id to nobody else while a process of the group is there, reaped first
// process or not. So a signal could meet a stranger only if, between a look that
// found the group and the signal, the last of it ended and the id, the oldest of
// all that are free, was given away: ids would have to go round in microseconds.
type group struct{ id int }

// signal sends a signal to everything in the group. It fails only if the group
// has ended, or nobody in it may be signalled, and then nothing can be done.
func (g group) signal(sig syscall.Signal) { _ = syscall.Kill(-g.id, sig) }

// ended reports whether nothing of the group is left to be waited for.
func (g group) ended() bool {
	return errors.Is(syscall.Kill(-g.id, 0), syscall.ESRCH) || g.buried()
}
