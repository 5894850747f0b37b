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
		Grace:  100 * time.Millisecond,
	}, async.Timeout(200*time.Millisecond))

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
	prefixed := proc.Lines(func(line string) { fmt.Println("build:", line) })
	_, err := proc.Run(context.Background(), proc.Command{
		Args:    []string{"sh", "-c", `echo compiling; trap 'printf "asked to stop"; exit 0' INT; while :; do sleep 0.01; done`},
		Stdout:  prefixed,
		Stderr:  prefixed,
		Signals: []syscall.Signal{syscall.SIGINT, syscall.SIGTERM},
	}, async.Timeout(200*time.Millisecond))
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// build: compiling
	// build: asked to stop
	// true
}
