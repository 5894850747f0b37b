package scheduler_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
)

func TestEqualTimesOfDayRunInTheOrderOfTheCalls(t *testing.T) {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
	at := time.Now().Add(200 * time.Millisecond)
	var got []int
	for i := range 200 {
		_, err := w.ScheduleAt(at, func(context.Context) { got = append(got, i) })
		require.NoError(t, err)
	}
	for w.Len() > 0 {
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, w.Drain(t.Context()))
	require.True(t, slices.IsSorted(got), "%v", got)
}

func TestTimesOfDayRunInTheirOrder(t *testing.T) {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
	at := time.Now().Add(200 * time.Millisecond)
	var got []int
	for i := range 200 {
		_, err := w.ScheduleAt(at.Add(time.Duration(i/2)*10), func(context.Context) { got = append(got, i/2) })
		require.NoError(t, err)
	}
	for w.Len() > 0 {
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, w.Drain(t.Context()))
	require.True(t, slices.IsSorted(got), "%v", got)
}

// an observer that panics when it is told of a panicked / cancelled task
func TestAnObserverThatPanicsAtAPanicWedgesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := recovering(scheduler.Goroutines())
		w := scheduler.New(pool, scheduler.Observe(func(e scheduler.Event) {
			if e.Outcome == scheduler.Panicked {
				panic("observer")
			}
		})).NewWorker(t.Context())
		ran := false
		require.NoError(t, w.Post(func() { panic("task") }))
		require.NoError(t, w.Post(func() { ran = true }))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := w.Wait(ctx)
		t.Logf("wait: %v ran: %v stats %+v", err, ran, w.Stats())
		require.NoError(t, err)
	})
}

func TestAnObserverThatPanicsAtTheEndOfAPeriodicTaskWedgesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := recovering(scheduler.Goroutines())
		w := scheduler.New(pool, scheduler.Observe(func(e scheduler.Event) {
			if e.Outcome == scheduler.Cancelled {
				panic("observer")
			}
		})).NewWorker(t.Context())
		var task scheduler.Task
		gate := make(chan struct{})
		task, err := w.ScheduleEvery(0, time.Second, func(context.Context) { <-gate; task.Cancel() })
		require.NoError(t, err)
		close(gate)
		ran := false
		require.NoError(t, w.Post(func() { ran = true }))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err = w.Wait(ctx)
		t.Logf("wait: %v ran: %v stats %+v", err, ran, w.Stats())
		require.NoError(t, err)
	})
}

func TestAnObserverThatPanicsAtAPanicThatClosesWedgesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := recovering(scheduler.Goroutines())
		w := scheduler.New(pool, scheduler.CloseOnPanic(), scheduler.Observe(func(e scheduler.Event) {
			if e.Outcome == scheduler.Cancelled {
				panic("observer")
			}
		})).NewWorker(t.Context())
		require.NoError(t, w.Post(func() { w.Post(func() {}); panic("task") }))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := w.Wait(ctx)
		t.Logf("wait: %v stats %+v", err, w.Stats())
		require.NoError(t, err)
	})
}

// the inline executor: a panic that Submit swallows
func TestAPanicBesideASubmittedFunctionIsNotSwallowed(t *testing.T) {
	w := scheduler.New(scheduler.Inline()).NewWorker(t.Context())
	var told any
	func() {
		defer func() { told = recover() }()
		_, err := scheduler.Submit(w, func(context.Context) (int, error) {
			return 1, w.Post(func() { panic("lost") })
		}).Await(t.Context(), 0)
		t.Log("err", err)
	}()
	require.Equal(t, "lost", told)
}

// inline, two panics: the second one is on a goroutine of the scheduler
func TestAPanicOfAnInlineTaskSwallowsNoOutcome(t *testing.T) {
	var events []scheduler.State
	w := scheduler.New(scheduler.Inline()).NewWorker(t.Context(), scheduler.Capacity(1, scheduler.DropOldest),
		scheduler.Observe(func(e scheduler.Event) { events = append(events, e.Outcome) }))
	task, err := w.ScheduleAfter(time.Hour, func(context.Context) {})
	require.NoError(t, err)
	func() {
		defer func() { recover() }()
		_ = w.Post(func() { panic("x") })
	}()
	require.Equal(t, scheduler.Rejected, task.State())
	require.Contains(t, events, scheduler.Rejected)
}

// pool that is ended after Drain
type endingPool struct {
	n     atomic.Int32
	ended atomic.Bool
}

func (p *endingPool) Execute(task func()) error { p.TryExecute(task); return nil }
func (p *endingPool) TryExecute(task func()) bool {
	if p.ended.Load() {
		p.n.Add(1)
	}
	go task()
	return true
}

func TestNothingIsOfferedAfterDrain(t *testing.T) {
	bad := 0
	stop := time.Now().Add(6 * time.Second)
	rounds := 0
	for time.Now().Before(stop) {
		rounds++
		p := &endingPool{}
		s := scheduler.New(p, scheduler.Batch(1))
		var ws []*scheduler.ExecutorWorker
		for range 4 {
			w := s.NewWorker(context.Background())
			ws = append(ws, w)
			for range 3 {
				_ = w.Post(func() {})
			}
		}
		for _, w := range ws {
			_ = w.Close()
		}
		_ = s.Drain(context.Background())
		p.ended.Store(true)
		runtime.Gosched()
		time.Sleep(10 * time.Microsecond)
		if p.n.Load() > 0 {
			bad++
		}
	}
	t.Log(rounds, bad)
	require.Zero(t, bad)
}

func TestNothingIsPostedAfterDrain(t *testing.T) {
	bad := 0
	stop := time.Now().Add(6 * time.Second)
	rounds := 0
	for time.Now().Before(stop) {
		rounds++
		p := &endingPool{}
		s := scheduler.New(p)
		w := s.NewWorker(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { _ = w.Post(func() {}) })
		for w.Stats().Scheduled == 0 {
		}
		_ = w.Close()
		_ = s.Drain(context.Background())
		p.ended.Store(true)
		wg.Wait()
		if p.n.Load() > 0 {
			bad++
		}
	}
	t.Log(rounds, bad)
	require.Zero(t, bad)
}

func TestAScopeKeepsLittleOfWorkersThatHaveEnded(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		s := scheduler.New(scheduler.Goroutines())
		before := heap()
		for range 5000 {
			w := s.NewWorker(ctx)
			_ = w.Post(func() {})
			_ = w.Drain(context.WithoutCancel(ctx))
		}
		grown := heap() - before
		t.Logf("%d bytes a worker, workers %d", grown/5000, s.Stats().Workers)
		require.Less(t, grown, int64(1<<20))
		runtime.KeepAlive(s)
		return nil
	}))
}

func TestTheEventOfAPanicTellsHowLongItRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e scheduler.Event
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context(), scheduler.RecoverPanics(func(*async.PanicError) {}), scheduler.Observe(func(x scheduler.Event) { e = x }))
		_ = w.Post(func() { time.Sleep(time.Second); panic(1) })
		_ = w.Drain(t.Context())
		require.Equal(t, time.Second, e.Ran)
	})
}

type lockCtx struct {
	context.Context
	s *scheduler.Scheduler
}

func (c lockCtx) Value(k any) any { c.s.Stats(); return c.Context.Value(k) }

func TestWhatIsPostedAfterADeadlineRunsAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i := range 200 {
			w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
			var got []string
			_, _ = w.ScheduleAfter(time.Second, func(context.Context) { got = append(got, "due") })
			time.Sleep(time.Second)
			_ = w.Post(func() { got = append(got, "post") })
			synctest.Wait()
			if got[0] != "due" {
				t.Fatal(i, got)
			}
		}
	})
}

// TestAContextOfOnesOwnIsAskedWithoutALock: it may ask the scheduler in turn.
func TestAContextOfOnesOwnIsAskedWithoutALock(t *testing.T) {
	s := scheduler.New(scheduler.Goroutines())
	require.NoError(t, s.NewWorker(t.Context()).Post(func() {}))
	require.NoError(t, s.Drain(lockCtx{t.Context(), s}))
}
