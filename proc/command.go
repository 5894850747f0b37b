// Package proc runs a command in a process group of its own and does not
// return before the group has ended.
//
//	result, err := proc.Run(ctx, proc.Command{
//		Args:   []string{"bash", "-c", script},
//		Stdout: log,
//		Stderr: log,
//		Grace:  10 * time.Second,
//	}, async.Timeout(time.Hour))
//
// A command is stopped by the end of ctx, and so by all that can abort a task:
// a timeout, a watchdog, the failure of a sibling, a signal. The group then gets
// TERM, and what is left of it after the grace gets KILL. The error tells both
// why it was stopped and how the command has ended: a command that answers TERM
// with exit status 7 has exit status 7. TERM is sent once. A process that a shell
// starts just as it hears TERM has not heard it, and gets KILL after the grace.
//
// proc.go is what is run, result.go what comes of it, run.go the stages of a run,
// stop.go the way to stop a group, group.go the group, output.go the pumps.
package proc

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"
)

// The defaults of a Command.
const (
	DefaultGrace  = 10 * time.Second
	DefaultLinger = 2 * time.Second
	DefaultGiveUp = 10 * time.Second
)

// A Command is what Run runs.
type Command struct {
	// Args are the program and its arguments. A program without a slash is
	// looked up in PATH.
	Args []string

	// Name is what errors call the command. Defaults to the last element of
	// the program's path.
	Name string

	Dir string   // defaults to that of this process
	Env []string // defaults to that of this process

	// Stdin is what the command reads. Defaults to the null device.
	Stdin *os.File

	// ExtraFiles are given to the command as descriptors 3 and up.
	ExtraFiles []*os.File

	// Stdout and Stderr take the output; nil throws it away. An *os.File is
	// given to the command as it is. Any other is written to by a task, one
	// Write at a time, also if both are the same. A writer that fails stops the
	// command, as a closed pipe would, with an *OutputError as the cause. One
	// that blocks makes the command wait, and is abandoned once that has been
	// stopped.
	Stdout, Stderr io.Writer

	// Grace is the time between TERM and KILL. Defaults to DefaultGrace; with a
	// negative one there is no TERM.
	Grace time.Duration

	// Hurry, if it is not nil, ends the grace when it is done, and the lingering:
	// the second level of a stop, for who does not want to wait. It stops
	// nothing by itself.
	Hurry context.Context

	// Linger is how long processes that the command has left in its group may
	// go on after it has ended by itself, and then how long somebody outside
	// the group may keep its output open. Defaults to DefaultLinger; negative
	// for not at all.
	Linger time.Duration

	// GiveUp is how long the system may take to end what was killed, and the
	// writers to take what is left of the output. Defaults to DefaultGiveUp.
	GiveUp time.Duration

	// Started, if it is not nil, is called with the id of the process, which
	// is also that of its group, before anything is read from it.
	Started func(pid int)

	// Signalling, if it is not nil, is called before TERM or KILL is sent to
	// the group, with the cause: nil if the command has ended by itself and
	// the signal is for what it has left.
	Signalling func(sig syscall.Signal, cause error)
}

// A Result is how a command has ended.
type Result struct {
	Pid    int            // 0 if it was not started
	Code   int            // its exit status; -1 if it has none
	Signal syscall.Signal // what has ended it, else 0
	Cause  error          // why it was stopped; nil if it has ended by itself

	// State tells the times and the memory used; nil if the command was not
	// started or has not ended.
	State *os.ProcessState

	// Killed reports that KILL was sent to the group.
	Killed bool

	// Left reports that the command has ended by itself and has left processes
	// in its group, which were ended.
	Left bool

	// Held reports that a process outside the group kept the output open when
	// the group had ended. What it has written since is lost.
	Held bool

	// Survived reports that something of the group was still there GiveUp
	// after KILL: a process that the system cannot end now.
	Survived bool
}
