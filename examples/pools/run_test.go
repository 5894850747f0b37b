package main

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/panjf2000/ants/v2"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/clitest"
	"github.com/ambit-go/ambit/scheduler"
)

func TestMain(m *testing.M) {
	ants.Release() // what importing ants has started
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"pools": main})
}

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: clitest.Commands[*testscript.TestScript](), Setup: clitest.Setup[*testscript.Env]})
}

// The program has said what it is going to do, and would be at it for days. However
// many workers there are, few have tasks: what is left of them is soon dropped.
func TestSignalEndsTheProgram(t *testing.T) {
	clitest.Signals(t, func(t *testing.T, sig syscall.Signal, status int) {
		for _, load := range [][]string{{"-tasks", "1000000000000"}, {"-workers", "1000000", "-tasks", "1000000000000"}} {
			p := clitest.Start(t, nil, "pools", load...)
			p.WaitFor("pool ")
			p.Signal(sig)
			assert.Equal(t, status, p.Wait())
			assert.Contains(t, p.Stderr(), "pools: stopped by signal: "+sig.String())
		}
	})
}

// A hundred thousand workers are no more to stop than a thousand: no others have
// anything to do.
func TestWorkersThatHaveTasksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		open := make(chan struct{})
		stuck := pool{"stuck", func(int) (scheduler.Executor, func(), error) {
			return scheduler.ExecutorFunc(func(task func()) error {
				go func() { <-open; task() }()
				return nil
			}), func() {}, nil
		}}
		before := runtime.NumGoroutine()
		ended := make(chan error)
		go func() {
			ended <- table(ctx, config{workers: 100_000, tasks: 2, size: 1, batch: 1}, []pool{stuck}, io.Discard)
		}()
		synctest.Wait()
		assert.Less(t, runtime.NumGoroutine()-before, 3*atOnce)
		stop(errors.New("enough"))
		close(open)
		assert.EqualError(t, <-ended, "enough")
	})
}

func TestTasksThatDoNotRunAreAFailure(t *testing.T) {
	refusing := pool{"refusing", func(int) (scheduler.Executor, func(), error) {
		return scheduler.ExecutorFunc(func(func()) error { return errors.New("no") }), func() {}, nil
	}}
	broken := pool{"broken", func(int) (scheduler.Executor, func(), error) { return nil, nil, errors.New("no room") }}
	for want, p := range map[string]pool{"refusing: worker 2: 3 of 3 tasks did not run": refusing, "cannot make the pool broken: no room": broken} {
		var stdout strings.Builder
		assert.ErrorContains(t, table(t.Context(), config{workers: 2, tasks: 3, size: 1, batch: 1}, []pool{p}, &stdout), want)
		assert.NotContains(t, stdout.String(), "in order")
	}
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
