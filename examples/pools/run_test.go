package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/scheduler"
)

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		Cmds:               map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": cmdExits},
		RequireUniqueNames: true,
	})
}

// exits STATUS program [args...]: runs the program, which must exit with STATUS.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits status program [args...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case err == nil && args[0] == "0":
	case errors.As(err, &exit) && strconv.Itoa(exit.ExitCode()) == args[0]:
	default:
		ts.Fatalf("want exit status %s, got %v", args[0], err)
	}
}

// The program has said what it is going to do, and would be at it for days.
func TestSignalEndsTheProgram(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals there")
	}
	cmd := exec.Command("pools", "-tasks", "1000000000000")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "pool ") {
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_, _ = io.Copy(io.Discard, stdout)
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	assert.Equal(t, statusInterrupt, exit.ExitCode())
	assert.Equal(t, "pools: stopped by signal: interrupt\n", stderr.String())
}

// runWith runs the program on one pool that is not one of its own.
func runWith(p pool, args ...string) (status int, stdout, stderr string) {
	var out, errs strings.Builder
	status = run(context.Background(), []pool{p}, args, &out, &errs)
	return status, out.String(), errs.String()
}

func TestTasksThatDoNotRunAreAFailure(t *testing.T) {
	refusing := pool{"refusing", func(int) (scheduler.Executor, func(), error) {
		return scheduler.ExecutorFunc(func(func()) error { return errors.New("no") }), func() {}, nil
	}}
	status, stdout, stderr := runWith(refusing, "-workers", "2", "-tasks", "3")
	assert.Equal(t, statusFailed, status)
	assert.Contains(t, stderr, "pools: refusing: worker 2: 3 of 3 tasks did not run\n")
	assert.NotContains(t, stdout, "in order")
}

func TestPoolThatCannotBeMadeIsAFailure(t *testing.T) {
	broken := pool{"broken", func(int) (scheduler.Executor, func(), error) { return nil, nil, errors.New("no room") }}
	status, _, stderr := runWith(broken)
	assert.Equal(t, statusFailed, status)
	assert.Equal(t, "pools: cannot make the pool broken: no room\n", stderr)
}

func TestLedgerSeesWhatIsWrong(t *testing.T) {
	for _, test := range []struct {
		name  string
		tasks []int
		want  []string
	}{
		{"in order", []int{0, 1, 2}, nil},
		{"one is missing", []int{0, 1}, []string{"worker 1: 1 of 3 tasks did not run"}},
		{"two are swapped", []int{0, 2, 1}, []string{"worker 1: 2 of 3 tasks ran out of order"}},
		{"one runs twice", []int{0, 1, 1, 2}, []string{"worker 1: 1 of 3 tasks ran twice", "worker 1: 2 of 3 tasks ran out of order"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var l ledger
			for _, i := range test.tasks {
				l.task(i)
			}
			assert.Equal(t, test.want, l.faults(1, 3))
		})
	}
	t.Run("two overlap", func(t *testing.T) {
		var l ledger
		l.busy.Store(true) // by another
		l.task(0)
		assert.Equal(t, []string{"worker 1: 1 of 1 tasks began while another ran"}, l.faults(1, 1))
	})
}
