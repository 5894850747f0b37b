//go:build unix

package view

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// An event is what the terminal, or whoever is at it, asks for.
type event int

const (
	nothing   event = iota
	resized         // it has another size
	suspended       // the process is to stop: Ctrl-Z
	resumed         // it was continued
)

// events are what came since they were asked for.
type events struct{ signals chan os.Signal }

// begin begins to listen, until stop is called.
func (e *events) begin() (stop func()) {
	e.signals = make(chan os.Signal, 8)
	signal.Notify(e.signals, syscall.SIGWINCH, syscall.SIGCONT)
	if !isOrphan() {
		signal.Notify(e.signals, syscall.SIGTSTP)
	}
	return func() { signal.Stop(e.signals) }
}

// next returns what has come, and does not wait for it.
func (e *events) next() event {
	select {
	case sig := <-e.signals:
		switch sig {
		case syscall.SIGWINCH:
			return resized
		case syscall.SIGTSTP:
			return suspended
		default:
			return resumed
		}
	default:
		return nothing
	}
}

// ticks are the parts of the second for which stopSelf waits.
const ticks = 10

// stopSelf stops this process, as TSTP would have done if it had not been heard. It
// returns when it was continued: other threads may be the first to be stopped, and
// this one go on for a moment. If it was not stopped, as the first process of a
// container never is, it returns after a second.
func stopSelf(e *events) {
	_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	// Ticks, and not one timer: while this process is stopped at most one of them comes, so
	// there is time left to hear that it was continued.
	given := time.NewTicker(time.Second / ticks)
	defer given.Stop()
	for left := ticks; left > 0; {
		select {
		case sig := <-e.signals:
			if sig == syscall.SIGCONT {
				return
			}
		case <-given.C:
			left--
		}
	}
}

// isOrphan reports whether nobody would continue this process if it stopped: the
// system does not stop such a process for TSTP. It is so if no process of its
// group has a parent that is in another group of the same session: a shell, which
// waits for it.
func isOrphan() bool {
	session, err := unix.Getsid(0)
	group := unix.Getpgrp()
	parent := os.Getppid()
	for err == nil && parent > 0 {
		if other, err := unix.Getsid(parent); err != nil || other != session {
			return true
		}
		if other, err := unix.Getpgid(parent); err != nil || other != group {
			return err != nil
		}
		parent = parentOf(parent) // in our group: go run, say
	}
	return false
}

// inForeground reports whether this process may draw on its terminal: it is not
// in the background of a shell. The owner of the terminal may also be what has started
// this process and waits for it, from another group: a script, by way of timeout(1).
func inForeground(f *os.File) bool {
	front, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	if err != nil || front == unix.Getpgrp() {
		return true // an error: it is not the terminal that has started us
	}
	for parent := os.Getppid(); parent > 1; parent = parentOf(parent) {
		if session, err := unix.Getsid(parent); err != nil || session == parent {
			return false // the shell that a person types at
		}
		if group, err := unix.Getpgid(parent); err == nil && group == front {
			return true
		}
	}
	return false
}
