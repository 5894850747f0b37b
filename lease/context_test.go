package lease_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/lease"
)

type valueKey struct{}

// goroutines returns how many goroutines there are in this bubble, if there is but one. Others may be about to end.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte(", synctest bubble "))
}

func TestAContextOfALeaseIsAsAStandardOne(t *testing.T) {
	errParent := errors.New("parent")
	in(t, func(ctx context.Context, w *world) {
		l := w.keep("k", length)
		parent, cancel := context.WithCancelCause(context.WithValue(ctx, valueKey{}, "value"))
		on, stop := l.Context(parent)
		defer stop()
		assert.Equal(t, "value", on.Value(valueKey{}))
		_, has := on.Deadline()
		assert.False(t, has, "a term that is renewed has none")
		assert.Equal(t, "lease.Context", fmt.Sprint(on))
		assert.NoError(t, on.Err())
		assert.NoError(t, context.Cause(on))
		assert.Equal(t, on.Done(), on.Done())

		synctest.Wait()
		before := goroutines()
		child, cancelChild := context.WithCancel(on)
		defer cancelChild()
		timed, cancelTimed := context.WithTimeout(child, time.Hour)
		defer cancelTimed()
		ran := make(chan struct{})
		context.AfterFunc(on, func() { close(ran) })
		synctest.Wait()
		assert.Equal(t, before, goroutines(), "children need no goroutine")

		cancel(errParent)
		for _, c := range []context.Context{on, child, timed} {
			assert.True(t, isClosed(c.Done()), "in the same step")
			assert.Equal(t, context.Canceled, c.Err())
			assert.Equal(t, errParent, context.Cause(c))
		}
		<-ran
		assert.NoError(t, l.Err(), "the lease is held until its owner lets go")
		time.Sleep(length)
		assert.NotEmpty(t, w.made())
		require.NoError(t, l.Release(ctx))
		assert.Equal(t, errParent, context.Cause(on), "the first cause counts")
	})
}

func TestStopEndsOneContextAndNoOther(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		l := w.keep("k", length)
		on, stop := l.Context(ctx)
		other, stopOther := l.Context(ctx)
		stop()
		stop()
		assert.Equal(t, context.Canceled, context.Cause(on))
		require.NoError(t, other.Err())
		require.NoError(t, l.End())
		is(t, context.Cause(other), lease.ErrEnded)
		stopOther()
		is(t, context.Cause(other), lease.ErrEnded)

		late, stopLate := l.Context(ctx)
		defer stopLate()
		assert.True(t, isClosed(late.Done()), "of a lease that has ended")
		is(t, context.Cause(late), lease.ErrEnded)
		require.NoError(t, l.Release(ctx))
	})
}

func TestALeaseKeepsNothingOfContextsThatWereStopped(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		l := w.keep("k", length)
		gone := new(atomic.Bool)
		func() {
			data := new([1 << 10]byte)
			runtime.AddCleanup(data, func(gone *atomic.Bool) { gone.Store(true) }, gone)
			_, stop := l.Context(context.WithValue(ctx, valueKey{}, data))
			stop()
		}()
		for !gone.Load() {
			runtime.GC()
			runtime.Gosched()
		}
		require.NoError(t, l.Release(ctx))
	})
}

// A caller of Err may hold a lock that others need who are told of the end.
func TestWhoAsksMayHoldALock(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		l := w.keep("k", length, lease.OnLoss(func(error) {}), lease.CauseOf(func(err error) error { return err }))
		on, stop := l.Context(ctx)
		defer stop()
		outer, cancel := context.WithCancel(ctx)
		defer cancel()
		inner, stopInner := l.Context(outer)
		defer stopInner()
		w.clock.Suspend(length)
		for range 4 {
			async.Go(ctx, func(context.Context) error {
				cancel()
				_, _, _ = inner.Err(), on.Value("k"), l.Err()
				return nil
			})
		}
		synctest.Wait()
		is(t, l.Err(), lease.ErrOver)
	})
}

func TestCheckLooksAtEachLeaseAroundIt(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		a, b := w.keep("a", length), w.keep("b", length)
		onA, stopA := a.Context(ctx)
		defer stopA()
		onB, stopB := b.Context(context.WithValue(onA, valueKey{}, 1))
		defer stopB()
		free := context.WithoutCancel(onB)
		require.NoError(t, lease.Check(onB))
		require.NoError(t, lease.Check(free))
		require.NoError(t, lease.Check(context.Background()))
		require.NoError(t, a.Release(ctx))
		is(t, lease.Check(onB), lease.ErrEnded)
		is(t, lease.Check(free), lease.ErrEnded)
		assert.NoError(t, free.Err(), "it is cancelled by nothing")
		assert.True(t, isClosed(onB.Done()))
		require.NoError(t, b.Release(ctx))
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		assert.Equal(t, context.Canceled, lease.Check(cancelled))
	})
}

type lostError struct{ err error }

func (e *lostError) Error() string { return "lock lost: " + e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

func TestTheCauseMayBeAnErrorOfTheCaller(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		l := w.keep("k", length, lease.CauseOf(func(err error) error { return &lostError{err} }))
		on, stop := l.Context(ctx)
		defer stop()
		w.clock.Suspend(length)
		_ = on.Err()
		var cause *lostError
		require.ErrorAs(t, context.Cause(on), &cause)
		assert.Same(t, cause, l.Err(), "one error for all")
		is(t, cause, lease.ErrOver)
	})
	for name, f := range map[string]func(error) error{
		"nil":    func(error) error { return nil },
		"panics": func(error) error { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(ctx context.Context, w *world) {
				l := w.keep("k", length, lease.CauseOf(f))
				w.clock.Suspend(length)
				is(t, l.Err(), lease.ErrOver)
				assert.Equal(t, name == "panics", bytes.Contains([]byte(l.Err().Error()), []byte("panicked: no")))
			})
		})
	}
}

func TestATaskUnderALeaseIsCancelledWithItsCause(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		l := w.keep("k", length)
		on, stop := l.Context(ctx)
		defer stop()
		f := async.Start(on, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		synctest.Wait()
		w.answers(down)
		_, err := f.Join(ctx)
		is(t, err, lease.ErrOver)
	})
}
