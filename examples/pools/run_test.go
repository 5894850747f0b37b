package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/clitest"
	"github.com/ambit-go/ambit/scheduler"
)

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) { clitest.Scripts(t, testscript.Params{}) }

// The program has said what it is going to do, and would be at it for days.
func TestSignalEndsTheProgram(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals there")
	}
	for sig, status := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143} {
		p := clitest.Start(t, nil, "pools", "-tasks", "1000000000000")
		p.WaitFor("pool ")
		p.Signal(sig)
		assert.Equal(t, status, p.Wait())
		assert.Equal(t, "pools: stopped by signal: "+sig.String()+"\n", p.Stderr())
	}
}

// runWith runs the program on one pool that is not one of its own.
func runWith(p pool, args ...string) (status int, stdout, stderr string) {
	var out, errs strings.Builder
	status = program([]pool{p}).Execute(context.Background(), args, cli.Streams{Out: &out, Err: &errs})
	return status, out.String(), errs.String()
}

func TestTasksThatDoNotRunAreAFailure(t *testing.T) {
	refusing := pool{"refusing", func(int) (scheduler.Executor, func(), error) {
		return scheduler.ExecutorFunc(func(func()) error { return errors.New("no") }), func() {}, nil
	}}
	status, stdout, stderr := runWith(refusing, "-workers", "2", "-tasks", "3")
	assert.Equal(t, cli.StatusFailed, status)
	assert.Contains(t, stderr, "pools: refusing: worker 2: 3 of 3 tasks did not run\n")
	assert.NotContains(t, stdout, "in order")
}

func TestPoolThatCannotBeMadeIsAFailure(t *testing.T) {
	broken := pool{"broken", func(int) (scheduler.Executor, func(), error) { return nil, nil, errors.New("no room") }}
	status, _, stderr := runWith(broken)
	assert.Equal(t, cli.StatusFailed, status)
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
