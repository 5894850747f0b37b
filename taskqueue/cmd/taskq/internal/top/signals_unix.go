//go:build unix

package top

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watched are the signals that have to do with the terminal, and those that would end
// the process with the terminal as it is now. Interrupt and TERM end the ctx of Run.
var watched = []os.Signal{
	syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT,
	syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT,
}

func kindOf(sig os.Signal) signalKind {
	switch sig {
	case syscall.SIGWINCH:
		return resized
	case syscall.SIGTSTP:
		return stops
	case syscall.SIGCONT:
		return goesOn
	}
	return ends
}

// stopSelf stops the process group, as the key does that is meant for it, and returns
// when it goes on. The signal of that key has a handler now, which Go does not take away
// again, so it is the one that nobody can catch. A group that leads its session has no
// shell that could have it go on: it is not stopped.
func stopSelf() {
	if session, err := unix.Getsid(0); err != nil || session == unix.Getpgrp() {
		return
	}
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	_ = syscall.Kill(0, syscall.SIGSTOP)
	select {
	case <-goesOn:
	case <-time.After(time.Second): // it was sent, and has had its effect by now
	}
}

// die ends the process by a signal, as it would have ended without us.
func die(sig os.Signal) {
	signal.Reset(sig)
	number := sig.(syscall.Signal)
	_ = syscall.Kill(syscall.Getpid(), number)
	time.Sleep(time.Second) // it takes effect in a moment
	os.Exit(128 + int(number))
}
