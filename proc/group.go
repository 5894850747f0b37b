//go:build unix

package proc

import (
	"errors"
	"syscall"
)

// A group is a process group, known by the id of its first process. The system
// gives an id to nobody else while a process of the group is there, reaped first
// process or not. But a group that ends unseen may leave its id to a stranger.
// So a signal goes by the handle where the system has one; that knows the group,
// and not its number. Where there is none, a signal could meet a stranger only if
// between two looks, of which the longest pause is 100 ms, the last of the group
// ended, and ids went round all that there are.
type group struct {
	id int
	handle
}

// signal sends a signal to everything in the group. It fails only if the group
// has ended, or nobody in it may be signalled, and then nothing can be done.
func (g *group) signal(sig syscall.Signal) { _ = g.send(sig) }

// send sends a signal, or with 0 only looks whether it could.
func (g *group) send(sig syscall.Signal) error {
	if err, ok := g.handle.send(sig); ok {
		return err
	}
	return syscall.Kill(-g.id, sig)
}

// ended reports whether nothing of the group is left to be waited for.
func (g *group) ended() bool {
	return errors.Is(g.send(0), syscall.ESRCH) || g.buried()
}
