//go:build unix

package proc_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/proc"
)

// A step of a pipeline takes too long. It hears TERM and ends with a status of its
// own; its child, which ignores TERM, gets KILL.
func ExampleRun() {
	var log strings.Builder
	result, err := proc.Run(context.Background(), proc.Command{
		Name: "step",
		Args: []string{"sh", "-c", `
			trap 'echo cleaning up; exit 7' TERM
			(trap '' TERM; exec sleep 600) &
			wait`},
		Stdout: &log,
		Stderr: &log, // the same writer: one stream, in order
		Grace:  time.Second,
	}, async.Timeout(2*time.Second))

	fmt.Print(log.String())
	fmt.Println("status", result.Status(), result.Notes())
	var exit *exec.ExitError
	fmt.Println(errors.As(err, &exit), errors.Is(err, context.DeadlineExceeded))
	// Output:
	// cleaning up
	// status 7 [some of its processes had to be killed]
	// true true
}

// The output of a step is logged by lines, and the step is stopped as by Ctrl-C first.
func ExampleLines() {
	enough := make(chan struct{})
	prefixed := proc.Lines(func(line string) {
		if fmt.Println("build:", line); line == "waiting" {
			close(enough)
		}
	})
	_, err := proc.Run(context.Background(), proc.Command{
		Args:    []string{"sh", "-c", `trap 'printf "asked to stop"; exit 0' INT; echo compiling; echo waiting; while :; do sleep 0.01; done`},
		Stdout:  prefixed,
		Stderr:  prefixed,
		Signals: []syscall.Signal{syscall.SIGINT, syscall.SIGTERM},
	}, async.StopOn(enough, errEnough))
	fmt.Println(errors.Is(err, errEnough))
	// Output:
	// build: compiling
	// build: waiting
	// build: asked to stop
	// true
}

var errEnough = errors.New("enough")

// The status, the signal and the cause of a step that was stopped.
func ExampleResult() {
	result, err := proc.Run(context.Background(), proc.Command{Name: "step", Args: []string{"sleep", "600"}}, async.Timeout(time.Second))
	fmt.Println(result.Status(), proc.SignalName(result.Signal), errors.Is(result.Cause, context.DeadlineExceeded), err != nil)
	// Output: 143 SIGTERM true true
}

// A command that has failed by itself.
func ExampleExitError() {
	_, err := proc.Run(context.Background(), proc.Command{Name: "lint", Args: []string{"sh", "-c", "exit 3"}})
	if exit := new(proc.ExitError); errors.As(err, &exit) {
		fmt.Println(exit.Name, exit.Result.Code, exit.Result.Cause)
	}
	fmt.Println(err)
	// Output:
	// lint 3 <nil>
	// lint: exit status 3
}

// A command hears INT, as by Ctrl-C, then TERM, and only then comes KILL.
func ExampleCommand() {
	enough := make(chan struct{})
	_, _ = proc.Run(context.Background(), proc.Command{
		Args:       []string{"sh", "-c", `trap '' INT TERM; echo deaf; while :; do sleep 0.01; done`},
		Stdout:     proc.Lines(func(string) { close(enough) }),
		Signals:    []syscall.Signal{syscall.SIGINT, syscall.SIGTERM},
		Grace:      100 * time.Millisecond,
		Signalling: func(sig syscall.Signal, _ error) { fmt.Println(proc.SignalName(sig)) },
	}, async.StopOn(enough, errEnough))
	// Output:
	// SIGINT
	// SIGTERM
	// SIGKILL
}

// A log that is written to a full disk stops the command: output is not lost in silence.
func ExampleOutputError() {
	_, err := proc.Run(context.Background(), proc.Command{Args: []string{"echo", "compiling"}, Stdout: fullDisk{}})
	if lost := new(proc.OutputError); errors.As(err, &lost) {
		fmt.Println(lost.Stream, lost.Err)
	}
	// Output: stdout no space left on device
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A reader that fails stops the command before that sees an end of its input.
func ExampleInputError() {
	_, err := proc.Run(context.Background(), proc.Command{Args: []string{"cat"}, Stdin: brokenPipe{}, Stdout: new(strings.Builder)})
	if lost := new(proc.InputError); errors.As(err, &lost) {
		fmt.Println(lost.Err)
	}
	// Output: broken pipe
}

type brokenPipe struct{}

func (brokenPipe) Read([]byte) (int, error) { return 0, syscall.EPIPE }

// Lines of something else than a command: Close gives the last one.
func ExampleLineWriter() {
	lines := proc.Lines(func(line string) { fmt.Printf("%q\n", line) })
	fmt.Fprint(lines, "one\ntwo\r\nth")
	fmt.Fprint(lines, "ree")
	_ = lines.Close()
	// Output:
	// "one"
	// "two"
	// "three"
}

func ExampleSignalName() {
	fmt.Println(proc.SignalName(syscall.SIGKILL))
	// Output: SIGKILL
}

// A writer that does not come back is abandoned, and named.
func ExampleErrStuck() {
	release := make(chan struct{})
	_, err := proc.Run(context.Background(), proc.Command{
		Args:   []string{"echo", "compiling"},
		Stdout: stuck(release),
		GiveUp: 50 * time.Millisecond,
	})
	fmt.Println(errors.Is(err, proc.ErrStuck))
	close(release)
	// Output: true
}

type stuck chan struct{}

func (s stuck) Write(p []byte) (int, error) { <-s; return len(p), nil }
