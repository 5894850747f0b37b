package proc

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"
)

// The defaults of a [Command].
const (
	DefaultGrace  = 10 * time.Second
	DefaultLinger = 2 * time.Second
	DefaultGiveUp = 10 * time.Second
)

// A Command is what [Run] runs. Only Args are needed. Run changes nothing in it.
type Command struct {
	// Args are the program and its arguments. A program without a slash is
	// looked up in PATH. It is an error if there is no program.
	Args []string

	// Name is what errors call the command. Defaults to the last element of
	// the program's path, and to "proc" if there is no program.
	Name string

	// Dir is the working directory. Defaults to that of this process. [Run] looks
	// whether the command may enter it before it starts the command, and says so if
	// not: the system would say that the program is missing.
	Dir string

	Env []string // defaults to that of this process

	// Stdin is what the command reads; nil is the null device. An *os.File is
	// given to the command as it is. Any other is read by a task, which ends when
	// it does, when the command does not want any more, or when the group has ended.
	// A reader that fails stops the command, with an *[InputError] as the cause,
	// before the command sees an end of its input. A Read that is under way when
	// the group has ended is not waited for: it may never return. Its task stays in
	// the root until it does, and what it reads then is lost.
	//
	// The group is in the background of a terminal: a command that reads from one
	// is stopped by the system.
	Stdin io.Reader

	// ExtraFiles are given to the command as descriptors 3 and up.
	ExtraFiles []*os.File

	// Stdout and Stderr take the output; nil throws it away. An *os.File is
	// given to the command as it is. Any other is written to by a task. A writer
	// that fails, panics or calls Goexit stops the command, as a closed pipe would,
	// with an *[OutputError] as the cause. One that blocks makes the command wait,
	// and is abandoned GiveUp after the group has ended.
	//
	// If both are the same writer they are one stream: the command has one pipe
	// for both, so the order is that in which it wrote, and there is one Write at
	// a time. They are the same if they are equal, or copies of one value that
	// cannot be compared. Two wrappers around one writer are not the same.
	Stdout, Stderr io.Writer

	// Signals ask the group to end: the first at once, each other if something is left
	// Grace after the one before. Then comes KILL. Defaults to TERM alone. With INT and TERM
	// a command is stopped as by Ctrl-C first, and more firmly then.
	Signals []syscall.Signal

	// Grace is the time after each of Signals, as between TERM and KILL. Defaults to
	// DefaultGrace; with a negative one KILL is the only signal.
	Grace time.Duration

	// Mixed sends Signals to the command alone, and KILL to all of the group: for a
	// command that stops its children itself, in an order of its own. When it has
	// ended, what it has left may go on for Linger, but not beyond the grace, and
	// gets KILL without any other signal. The name is that of systemd's KillMode.
	Mixed bool

	// Hurry, if it is not nil, ends the grace and the lingering when it is done: it
	// is the second level of a stop, where nobody waits any longer. Processes get
	// KILL at once then. It stops nothing by itself. A service gives what
	// service.Hurry returns.
	Hurry context.Context

	// Linger is how long processes that the command has left in its group may
	// go on after it has ended by itself, and then how long somebody outside
	// the group may keep its output open. The end of ctx ends the former.
	// Defaults to DefaultLinger; negative for not at all.
	Linger time.Duration

	// GiveUp is how long the system may take to end what was killed, and the
	// writers to take what is left of the output. Defaults to DefaultGiveUp.
	GiveUp time.Duration

	// DieWithParent has the system kill the command when this process is gone, even if
	// that was by KILL: for a command that must not run without whoever has started it.
	// It holds for the command alone, not for what it has started. Linux can do it;
	// elsewhere it has no effect.
	DieWithParent bool

	// Started, if it is not nil, is called with the id of the process, which
	// is also that of its group, before anything is read from it.
	//
	// This function and Signalling are called on a goroutine of their own, and
	// waited for, but not for longer than a second. One that panics, or has not
	// returned when Run does, is an error of the run.
	Started func(pid int)

	// Signalling, if it is not nil, is called before one of Signals or KILL is sent to
	// the group, with the cause: nil if the command has ended by itself and
	// the signal is for what it has left. With Mixed, all but KILL are the command's alone.
	Signalling func(sig syscall.Signal, cause error)
}
