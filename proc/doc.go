// Package proc runs a command in a process group of its own and does not return
// before the group has ended.
//
//	result, err := proc.Run(ctx, proc.Command{
//		Args:   []string{"bash", "-c", script},
//		Stdout: log,
//		Stderr: log,
//		Grace:  10 * time.Second,
//	}, async.Timeout(time.Hour))
//
// There is one function, [Run]. It is a task of the scope of ctx, and takes the
// options of tasks; with a server as the command it is the body of a service.
//
// # Stopping
//
// A command is stopped by the end of ctx, and so by all that can abort a task: a
// timeout, a watchdog, the failure of a sibling, a signal. The group then gets
// TERM, and what is left of it after the grace gets KILL. A process that has been stopped
// (SIGSTOP) is continued, to hear TERM. [Command.Mixed] gives TERM to the command
// alone, [Command.Signals] are others that ask before KILL, such as INT and then TERM, and
// [Command.Hurry] ends the grace early.
//
// The error tells both why it was stopped and how the command has ended: a
// command that answers TERM with exit status 7 has exit status 7. TERM is sent
// once. A process that a shell starts just as it hears TERM has not heard it, and
// gets KILL after the grace.
//
// # The exit status of the program
//
// The status of a command is not that of the program which runs it: a helper that fails with 3 is one
// of its errors, and Main of package service ends with 1. A program that is to end as its command
// did says so:
//
//	result, err := proc.Run(ctx, step)
//	return service.WithStatus(err, result.Status())
//
// # What is left behind
//
// A command that ends by itself may leave processes in its group. They may go on
// for [Command.Linger], and are then stopped as above. This is no failure; the
// [Result] tells of it. A process that has left the group, by setsid say, is not
// reached. It can hold the output open: Run does not wait for it longer than
// Linger.
//
// Nobody's children but its own are waited for: programs that use os/exec beside
// this package get the exit status of theirs.
//
// # Output
//
// The output that the command has written when it ends is read to the end and given to
// the writers before Run returns, or the error says that it was lost. Stdout and
// Stderr may be one writer, which gets both in the order in which they were
// written. [Lines] is a writer that gives the output line by line.
//
// # Limits
//
// This needs process groups, which only Unix has; elsewhere Run returns an error
// that matches [errors.ErrUnsupported]. To start a program may block in the
// system, on a file system that hangs, say: ctx does not end that. Before Linux
// 6.9, and on other systems, a signal goes by the number of the group: it could meet
// a stranger if between two looks at the group, at most 100 ms apart, all of it ended
// and the system gave its number to another.
//
// The stages are those of the process packages of CI runners, of systemd's
// KillMode and TimeoutStopSec, and of timeout(1) with its -k.
package proc
