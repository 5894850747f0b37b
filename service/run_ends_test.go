package service_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/service"
)

func TestARunThatPanicsDrainsTheOthersFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		d := newDiary()
		errLate := errors.New("late")
		p := panicOf(t, func() {
			_ = service.Run(ctx, []service.Service{
				d.worker("other", time.Minute/10),
				{Name: "closer", Run: func(ctx context.Context) error {
					<-ctx.Done()
					var p *async.PanicError
					assert.ErrorAs(t, context.Cause(ctx), &p)
					return errLate
				}},
				{Name: "bad", Run: func(ctx context.Context) error {
					_ = async.Sleep(ctx, time.Second)
					panic("boom")
				}},
			})
		})
		assert.Equal(t, "boom", p.Value)
		assert.Equal(t, "service bad", p.Task)
		require.ErrorIs(t, errors.Join(p.Also...), errLate, "what has failed beside it is told with it")
		assert.Equal(t, []string{"other runs", "other drains", "other ends"}, d.read())
	})
}

// panicOf returns what f panics with.
func panicOf(t *testing.T, f func()) (p *async.PanicError) {
	t.Helper()
	defer func() {
		var ok bool
		p, ok = recover().(*async.PanicError)
		require.True(t, ok)
	}()
	f()
	return nil
}

func TestGoexitOfAServiceIsAFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		err := service.Run(ctx, []service.Service{
			{Name: "other", Run: await},
			{Name: "x", Run: func(context.Context) error { runtime.Goexit(); return nil }},
		})
		require.ErrorIs(t, err, async.ErrGoexit)
	})
}

func TestShutdownCutsTheDrainShort(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		time.AfterFunc(time.Second, func() {
			async.Detach(ctx, "held up", func(ctx context.Context) error { // Shutdown does not wait for scopes
				<-ctx.Done()
				return nil
			})
			done, cancel := context.WithCancel(ctx)
			cancel()
			_ = async.Shutdown(done)
		})
		err := service.Run(ctx, []service.Service{{Run: await, Drain: await}})
		require.ErrorIs(t, err, async.ErrShutdown)
	})
}

func TestRunInAScopeIsJoinedByIt(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		d := newDiary()
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				return service.Run(ctx, []service.Service{d.worker("x", 5*time.Second)})
			})
			_ = async.Sleep(ctx, time.Second)
			return errPlanted
		})
		assert.Equal(t, errPlanted, err, "a drain because the scope is cancelled is no failure of it")
		assert.Equal(t, []string{"x runs", "x drains", "x ends"}, d.read())
	})
}

func TestRunsAtOnceAndNested(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		d := newDiary()
		time.AfterFunc(time.Second, func() { stop(errStop) })
		inner := service.Service{Name: "set", Run: func(ctx context.Context) error {
			return service.Run(ctx, []service.Service{d.worker("in-1", time.Second), d.worker("in-2", time.Second)})
		}}
		require.NoError(t, async.Scope(context.WithoutCancel(ctx), func(scope context.Context) error {
			async.Go(scope, func(context.Context) error { return service.Run(ctx, []service.Service{{Run: await}}) })
			return service.Run(ctx, []service.Service{d.worker("first", time.Second), inner, d.worker("last", time.Second)})
		}))
		events := d.read()
		assert.Equal(t, []string{"last drains", "last ends", "in-2 drains", "in-2 ends", "in-1 drains", "in-1 ends",
			"first drains", "first ends"}, events[4:])
	})
}

func TestEqualAndMissingNames(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		err := service.Run(ctx, []service.Service{
			{Name: "x", Run: await}, {Name: "x", Run: await}, {Run: await},
			{Run: func(context.Context) error { return errPlanted }},
		})
		require.EqualError(t, err, "service 4: planted", "named after its place")
	})
}

func TestMisuseOfRun(t *testing.T) {
	ctx := asynctest.Context(t)
	for want, run := range map[string]func(){
		"service: service x has a nil Run: set it to a function that blocks while it serves": func() {
			_ = service.Run(ctx, []service.Service{{Run: await}, {Name: "x"}})
		},
		"service: service 2 has a negative Startup: leave it 0 if it need not call Ready": func() {
			_ = service.Run(ctx, []service.Service{{Run: await}, {Run: await, Startup: -1}})
		},
		"service: Run with a nil context: pass the one that Main gives, or context.Background()": func() {
			var none context.Context
			_ = service.Run(none, nil)
		},
		"service: a nil Option: leave it out": func() { _ = service.Run(ctx, nil, nil) },
		"service: HTTP with a nil listener or server: open the one, and set the Handler of the other": func() {
			service.HTTP("x", nil, nil)
		},
		"service: Main with a nil function: pass what the program does": func() { service.Main(nil) },
	} {
		assert.PanicsWithValue(t, want, run)
	}
}
