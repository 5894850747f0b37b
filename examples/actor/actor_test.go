package main

import (
	"context"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/clitest"
	"github.com/ambit-go/ambit/scheduler"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"actor": main})
}

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: clitest.Commands[*testscript.TestScript](), Setup: clitest.Setup[*testscript.Env]})
}

// The program has said what it is going to do, and would be at it for days.
func TestSignalEndsTheProgram(t *testing.T) {
	clitest.Signals(t, func(t *testing.T, sig syscall.Signal, status int) {
		p := clitest.Start(t, nil, "actor", "-transfers", "1000000000000")
		p.WaitFor("refused")
		p.Signal(sig)
		assert.Equal(t, status, p.Wait())
		assert.Equal(t, "actor: stopped by signal: "+sig.String()+"\n", p.Stderr())
	})
}

// inScope runs test in a scope, which has to end well.
func inScope(t *testing.T, test func(ctx context.Context, s *scheduler.Scheduler)) {
	t.Helper()
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		test(ctx, scheduler.New(scheduler.Goroutines()))
		return nil
	}))
}

// add is asked of an actor that counts.
func add(_ context.Context, n *int) (int, error) { *n++; return *n, nil }

// The state is plain memory, so the race detector sees it if functions overlap.
func TestFunctionsOfAnActorRunOneAtATimeInOrder(t *testing.T) {
	const callers, calls = 16, 200
	inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
		log := newActor(ctx, s, "log", [callers][]int{})
		var calling sync.WaitGroup
		for caller := range callers {
			calling.Go(func() {
				for call := range calls {
					note := func(log *[callers][]int) { log[caller] = append(log[caller], call) }
					if call%2 == 0 {
						assert.NoError(t, log.tell(note))
						continue
					}
					n, err := ask(ctx, log, func(_ context.Context, log *[callers][]int) (int, error) {
						note(log)
						return len(log[caller]), nil
					})
					assert.NoError(t, err)
					assert.Equal(t, call+1, n, "what was told before is done")
				}
			})
		}
		calling.Wait()
		for _, calls := range log.state { // the last ask has returned
			for i, call := range calls {
				require.Equal(t, i, call)
			}
		}
	})
}

func TestActorGoesOnAfterAPanic(t *testing.T) {
	inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
		a := newActor(ctx, s, "a", 0)
		_, err := ask(ctx, a, func(context.Context, *int) (int, error) { panic("boom") })
		var p *async.PanicError
		require.ErrorAs(t, err, &p)
		assert.Equal(t, "boom", p.Value)
		n, err := ask(ctx, a, add)
		assert.NoError(t, err)
		assert.Equal(t, 1, n)
	})
}

func TestActorThatAsksItselfIsTold(t *testing.T) {
	inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
		a := newActor(ctx, s, "a", 0)
		_, err := ask(ctx, a, func(ctx context.Context, _ *int) (int, error) { return ask(ctx, a, add) })
		assert.ErrorIs(t, err, scheduler.ErrSelfWait)
	})
}

func TestActorEndsWithItsScope(t *testing.T) {
	var a *actor[int]
	inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
		a = newActor(ctx, s, "a", 0)
		require.NoError(t, a.tell(func(state *int) { *state = 5 }))
	})
	assert.Equal(t, 5, a.state, "what was told is done before the scope has ended")
	assert.ErrorIs(t, a.tell(func(*int) {}), scheduler.ErrClosed)
	_, err := ask(t.Context(), a, add)
	assert.ErrorIs(t, err, scheduler.ErrClosed)
}
