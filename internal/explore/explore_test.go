package explore

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var errPlanted = errors.New("planted")

// find explores program, which has a fault, and returns what was found.
func find(t *testing.T, c Config, program func(*World)) *Finding {
	t.Helper()
	if c.Schedules == 0 {
		c.Schedules = 5000
	}
	if c.Seed == 0 {
		c.Seed = 1 // the same schedules each time: how far one shrinks depends on which it is
	}
	f, stats := Find(t, c, program)
	require.NotNil(t, f, "nothing was found in %d schedules", stats.Schedules)
	t.Logf("schedule %d, %d deviations shrunk to %d", f.Schedules, f.Found, f.Shrunk)
	return f
}

// checkThenAct has two goroutines take the one thing that is left.
func checkThenAct(w *World) {
	var left, taken Int32
	left.Store(1)
	take := func() {
		if left.Load() > 0 {
			left.Add(-1)
			if taken.Add(1) > 1 {
				w.Failf("taken twice")
			}
		}
	}
	w.Go("thief", take)
	w.Go("thief", take)
}

func TestCheckThenActIsFound(t *testing.T) {
	f := find(t, Config{Level: Atomics}, checkThenAct)
	require.EqualError(t, f.Err, "taken twice")
	require.LessOrEqual(t, f.Shrunk, 3)
	require.Contains(t, f.Trace, "thief")
}

func TestOnlyTheLevelOfAtomicsSeparatesAtomics(t *testing.T) {
	f, _ := Find(t, Config{Level: Locks, Schedules: 500}, checkThenAct)
	require.Nil(t, f)
}

// lostWakeUp waits for a flag that is set between the look at it and the wait.
func lostWakeUp(w *World) {
	var m Mutex
	c := Cond{L: &m}
	var ready Bool
	w.Go("waker", func() {
		ready.Store(true) // not under the lock
		m.Lock()
		c.Signal()
		m.Unlock()
	})
	m.Lock()
	seen := ready.Load()
	m.Unlock()
	if !seen {
		m.Lock()
		c.Wait()
		m.Unlock()
	}
}

func TestLostWakeUpIsFound(t *testing.T) {
	f := find(t, Config{}, lostWakeUp)
	require.ErrorContains(t, f.Err, "stuck")
	require.ErrorContains(t, f.Err, "main")
}

func TestLockCycleIsFound(t *testing.T) {
	f := find(t, Config{Level: Locks}, func(w *World) {
		var a, b Mutex
		both := func(first, second *Mutex) func() {
			return func() {
				first.Lock()
				defer first.Unlock()
				second.Lock()
				defer second.Unlock()
			}
		}
		w.Go("ab", both(&a, &b))
		w.Go("ba", both(&b, &a))
	})
	require.ErrorContains(t, f.Err, "lock cycle")
	require.ErrorContains(t, f.Err, "ab")
	require.ErrorContains(t, f.Err, "ba")
}

func TestOneWhoLocksTwiceIsALockCycle(t *testing.T) {
	f := find(t, Config{}, func(*World) {
		var m Mutex
		m.Lock()
		m.Lock()
	})
	require.ErrorContains(t, f.Err, "lock cycle")
	require.Zero(t, f.Shrunk)
}

func TestTimersRaceWithWhatRuns(t *testing.T) {
	f := find(t, Config{Level: Locks}, func(w *World) {
		var m Mutex
		late := false
		time.AfterFunc(2*time.Millisecond, func() {
			m.Lock()
			late = true
			m.Unlock()
		})
		for range 3 {
			func() {
				m.Lock()
				defer m.Unlock()
			}()
		}
		m.Lock()
		defer m.Unlock()
		if late {
			w.Failf("the timer was first")
		}
	})
	require.EqualError(t, f.Err, "the timer was first")
	require.LessOrEqual(t, f.Shrunk, 3)
}

func TestWhatIsLeftIsFound(t *testing.T) {
	t.Run("at a condition", func(t *testing.T) {
		f := find(t, Config{}, func(w *World) {
			w.Go("left", func() {
				var m Mutex
				c := Cond{L: &m}
				m.Lock()
				c.Wait()
			})
		})
		require.ErrorContains(t, f.Err, "goroutines are left")
	})
	t.Run("asleep", func(t *testing.T) {
		f := find(t, Config{}, func(w *World) { go time.Sleep(time.Hour) })
		require.ErrorContains(t, f.Err, "goroutines are left")
	})
}

func TestSleepingLongIsFound(t *testing.T) {
	f := find(t, Config{}, func(w *World) { time.Sleep(time.Hour) })
	require.ErrorContains(t, f.Err, "stuck")
}

func TestPanicsAreFound(t *testing.T) {
	f := find(t, Config{}, func(w *World) { w.Go("bad", func() { panic("ouch") }) })
	require.ErrorContains(t, f.Err, "bad")
	require.ErrorContains(t, f.Err, "ouch")
}

func TestEndlessProgramsAreFound(t *testing.T) {
	f := find(t, Config{Steps: 100}, func(w *World) {
		for {
			w.Point("again")
		}
	})
	require.ErrorContains(t, f.Err, "not done after 100 decisions")
}

func TestChecksAtTheEnd(t *testing.T) {
	f := find(t, Config{}, func(w *World) {
		ended := false
		w.AtEnd(func() error {
			if !ended {
				t.Error("called before the end")
			}
			return errPlanted
		})
		w.Go("last", func() {
			w.Point("before")
			ended = true
		})
	})
	require.ErrorIs(t, f.Err, errPlanted)
}

// Peterson's lock is right, so no schedule may fail, and all are tried.
func TestExhaustiveIsComplete(t *testing.T) {
	peterson := func(broken bool) func(w *World) {
		return func(w *World) {
			var wants [2]Bool
			var turn, inside Int32
			side := func(me int32) func() {
				return func() {
					wants[me].Store(!broken)
					turn.Store(1 - me)
					for tries := 0; wants[1-me].Load() && turn.Load() == 1-me; tries++ {
						if tries == 2 {
							return // there is no fairness: give up
						}
					}
					if inside.Add(1) != 1 {
						w.Failf("two are inside")
					}
					inside.Add(-1)
					wants[me].Store(false)
				}
			}
			w.Go("left", side(0))
			w.Go("right", side(1))
		}
	}
	c := Config{Schedules: 100_000, Strategy: Exhaustive(2), Ticks: -1}
	f, stats := Find(t, c, peterson(false))
	require.Nil(t, f)
	require.True(t, stats.Complete)
	t.Logf("%d schedules", stats.Schedules)

	f, _ = Find(t, c, peterson(true))
	require.NotNil(t, f)
}

func TestOutsideTheyAreOrdinary(t *testing.T) {
	var m Mutex
	c := Cond{L: &m}
	var n Int32
	p := Pool{New: func() any { return 1 }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Lock()
		for n.Load() == 0 {
			c.Wait()
		}
		m.Unlock()
	}()
	m.Lock()
	require.False(t, m.TryLock())
	n.Store(1)
	c.Signal()
	c.Broadcast()
	m.Unlock()
	<-done
	require.Equal(t, 1, p.Get())
	p.Put(2)
	Start("nobody", t)()
}

// A goroutine outside the bubble and one inside keep each other out.
func TestOutsidersShareLocks(t *testing.T) {
	var m Mutex
	stop, stopped := make(chan struct{}), make(chan struct{})
	n := 0
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				m.Lock()
				n++
				m.Unlock()
			}
		}
	}()
	Run(t, Config{Schedules: 100}, func(w *World) {
		for range 2 {
			w.Go("inside", func() {
				m.Lock()
				n++
				m.Unlock()
			})
		}
	})
	close(stop)
	<-stopped
}
