//go:build unix

package proc_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/proc"
)

// A step of a pipeline is a script.
type step struct {
	name, script string
}

// run runs a step and logs its output by lines. When it returns no process of the step is left, unless one has left the group.
func (s step) run(ctx context.Context) error {
	log := proc.Lines(func(line string) { fmt.Printf("[%s] %s\n", s.name, line) })
	result, err := proc.Run(ctx, proc.Command{
		Name:    s.name,
		Args:    []string{"sh", "-c", s.script},
		Stdout:  log,
		Stderr:  log,
		Signals: []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, // as by Ctrl-C first; then KILL
		Grace:   5 * time.Second,
	}, async.Timeout(time.Hour))
	for _, note := range result.Notes() {
		fmt.Printf("[%s] %s\n", s.name, note)
	}
	return err
}

// A pipeline runs its steps until one fails, and says which, and with which status.
func Example() {
	steps := []step{
		{"build", "echo compiling; echo done >&2"},
		{"test", "echo '1 of 2 failed'; exit 3"},
		{"deploy", "echo deploying"},
	}
	for _, s := range steps {
		err := s.run(context.Background())
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			fmt.Println(err, exit.ExitCode())
		}
		if err != nil {
			break
		}
	}
	// Output:
	// [build] compiling
	// [build] done
	// [test] 1 of 2 failed
	// test: exit status 3 3
}
