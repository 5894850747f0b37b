//go:build explore

package async

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ambit-go/ambit/internal/bridge"
	"github.com/ambit-go/ambit/internal/explore"
)

// TestExplore runs programs that are made by chance in orders that are, too,
// and holds them to what is true of every program.
func TestExplore(t *testing.T) {
	explore.Run(t, explore.Config{}, exploreProgram)
}

func exploreProgram(w *explore.World) {
	p := makeProgram(w.Rand())
	m := &machine{w: w}
	w.Describe(p)
	w.AtEnd(m.check)
	top, cancel := context.WithCancel(context.Background())
	defer cancel()
	ctx := bridge.NewRoot(top, func(err error) { m.locked(func() { m.lost = append(m.lost, err) }) }, func(string) {})
	e := env{machine: m, ctx: ctx}
	_ = e.scope(p)
	if w.Elapsed() > time.Second {
		w.Failf("it took %v", w.Elapsed())
	}
	patient, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	if err := Shutdown(patient); err != nil {
		w.Failf("something is left: %v", err)
	}
}

// A context that is done stays done, also while the scope of its task is made,
// which is on first need, and by another goroutine perhaps.
func TestExploreADoneContextStaysDone(t *testing.T) {
	explore.Run(t, explore.Config{Level: explore.Atomics, Ticks: -1, Schedules: 5000}, func(w *explore.World) {
		top := bridge.NewRoot(context.Background(), func(err error) { w.Failf("told to the root: %v", err) }, func(string) {})
		_ = Scope(top, func(ctx context.Context) error {
			child := make(chan context.Context, 1)
			Go(ctx, func(ctx context.Context) error {
				child <- ctx
				before, cause := ctx.Err(), context.Cause(ctx)
				if after := ctx.Err(); before != nil && after != before {
					w.Failf("the context of a task said %v, now it says %v", before, after)
				}
				if after := context.Cause(ctx); cause != nil && after != cause {
					w.Failf("the cause of a task's context was %v, now it is %v", cause, after)
				}
				return nil
			})
			w.Go("makes the scope", func() { (<-child).Done() })
			return errRefused // cancels
		})
	})
}

// Dismissing a daemon that is about to leave is done once, not until it has
// left: a schedule that prefers the joining goroutine would never end.
func TestExploreADaemonIsDismissedOnce(t *testing.T) {
	explore.Run(t, explore.Config{Level: explore.Atomics, Schedules: 3000, Ticks: -1, Steps: 1000}, func(w *explore.World) {
		top := bridge.NewRoot(context.Background(), func(err error) { w.Failf("told to the root: %v", err) }, func(string) {})
		err := Scope(top, func(ctx context.Context) error {
			Go(ctx, func(ctx context.Context) error {
				Start(ctx, func(context.Context) error { return nil })
				return nil
			}, Daemon())
			return nil
		})
		if err != nil {
			w.Failf("a scope failed: %v", err)
		}
	})
}

// A promise that is rejected while its scope ends has settled when the scope
// returns, and its error is in what that returns, unless the scope was first.
func TestExploreAPromiseSettlesBeforeItsScopeReturns(t *testing.T) {
	explore.Run(t, explore.Config{Strategy: explore.Exhaustive(2), Ticks: -1}, func(w *explore.World) {
		top := bridge.NewRoot(context.Background(), func(err error) { w.Failf("told to the root: %v", err) }, func(string) {})
		var f *Future[int]
		rejected := make(chan bool, 1)
		err := Scope(top, func(ctx context.Context) error {
			var p *Promise[int]
			f, p = NewPromise[int](ctx)
			w.Go("rejects", func() { rejected <- p.Reject(plantedError(1)) })
			return nil
		})
		if _, why, ok := f.Result(); !ok {
			w.Failf("a scope has returned before a promise of it settled")
		} else if errors.Is(why, plantedError(1)) != <-rejected {
			w.Failf("a promise holds %v", why)
		} else if !errors.Is(why, ErrAbandoned) && !errors.Is(err, why) {
			w.Failf("the scope lost %v: %v", why, err)
		}
	})
}

var (
	errLate    = errors.New("late")
	errStopped = errors.New("stopped")
)

// A scope gives its tasks up while the last of them fails and ends, in any order. What
// failed is told once, by the scope or by the root; the scope names somebody, or waits
// for all; whoever looks finds what has not ended at the root or below it; daemons are
// told to go; the exit hook is run once; and nothing is left.
func TestExploreAScopeGivesItsTasksUp(t *testing.T) {
	for name, opts := range map[string][]ScopeOption{
		"alone":          nil,
		"beside OnStall": {OnStall(time.Millisecond, func(*StragglerError) {})},
	} {
		t.Run(name, func(t *testing.T) {
			explore.Run(t, explore.Config{Schedules: 4000, Ticks: 12, Steps: 6000}, func(w *explore.World) {
				exploreGivingUp(w, opts)
			})
		})
	}
}

func exploreGivingUp(w *explore.World, opts []ScopeOption) {
	var told, hooks int
	var started, ended bool
	tell := func(err error) {
		switch {
		case errors.Is(err, errLate):
			told++
		case err != nil:
			w.Failf("told to the root: %v", err)
		}
	}
	root := bridge.NewRoot(context.Background(), tell, func(string) {})
	top, join := bridge.OpenTop(root)
	end, looked := make(chan struct{}), make(chan struct{})
	w.Go("ends", func() { close(end) })
	w.Go("looks", func() {
		for range 3 {
			if before := started; before && len(bridge.Live(root)) == 0 && !ended {
				w.Failf("a task has not ended, and nobody finds it")
			}
		}
		close(looked)
	})
	err := Scope(top, func(ctx context.Context) error {
		OnExit(ctx, func(context.Context, error) error { hooks++; return nil })
		unstopped := context.WithoutCancel(ctx)
		Go(unstopped, func(ctx context.Context) error { <-ctx.Done(); return nil }, Daemon())
		Go(unstopped, func(context.Context) error { <-end; ended = true; return errLate })
		started = true
		return errStopped
	}, append(opts, DetachAfter(time.Millisecond))...)
	var left *StragglerError
	switch {
	case !errors.Is(err, errStopped):
		w.Failf("the scope has returned %v", err)
	case errors.As(err, &left) && len(left.Left) == 0:
		w.Failf("the scope has returned without tasks that it does not name")
	case left == nil && (hooks != 1 || !ended):
		w.Failf("the scope has returned before all has ended")
	}
	if errors.Is(err, errLate) {
		told++
	}
	<-looked
	if err := Shutdown(root); err != nil {
		w.Failf("something is left: %v", err)
	}
	if err := join(root); err != nil {
		w.Failf("the top has failed: %v", err)
	}
	if told != 1 || hooks != 1 {
		w.Failf("the failure was told %d times, and %d exit hooks have run", told, hooks)
	}
}

// A Go that races the end of its group runs and is joined, or is refused; and a
// group goes to rest and wakes while its owner ends, or is cancelled.
func TestExploreGoRacesTheEndOfAGroup(t *testing.T) {
	for name, end := range map[string]func(g *Group, ctx context.Context) error{
		"Stop": func(g *Group, ctx context.Context) error { return g.Stop(ctx, errRefused) },
		"Wait": func(g *Group, ctx context.Context) error { return g.Wait(ctx) },
		"nobody": func(*Group, context.Context) error {
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			explore.Run(t, explore.Config{Schedules: 4000, Ticks: -1, Steps: 3000}, func(w *explore.World) {
				top := bridge.NewRoot(context.Background(), func(err error) { w.Failf("told to the root: %v", err) }, func(string) {})
				var over bool
				var ran, accepted int
				goes := make(chan struct{}, 2)
				err := Scope(top, func(ctx context.Context) error {
					g := NewGroup(ctx)
					OnExit(g.Context(), func(context.Context, error) error { return nil })
					try := func() {
						err := g.Go(func(context.Context) error {
							if over {
								w.Failf("a task runs in a group that has ended")
							}
							ran++
							return nil
						})
						if err == nil {
							accepted++
						} else if !errors.Is(err, ErrScopeEnded) {
							w.Failf("Go was refused with %v", err)
						}
						goes <- struct{}{}
					}
					try()
					w.Go("goes", try)
					if err := end(g, ctx); err != nil {
						w.Failf("the group failed: %v", err)
					}
					over = name != "nobody"
					return nil
				})
				<-goes
				<-goes
				if err != nil || ran != accepted {
					w.Failf("%v; of %d tasks that were accepted %d have run", err, accepted, ran)
				}
				if err := Shutdown(top); err != nil {
					w.Failf("something is left: %v", err)
				}
			})
		})
	}
}

// Programs that are explored are small, and made by chance. A program is data,
// so it does not depend on the order in which it runs.

// A deed is one thing that a handler or a body does.
type deed struct {
	what   stepKind
	n      int           // which future, which executor, how many
	d      time.Duration // 0: none
	opts   taskBits
	limit  int
	repeat int  // so often the parts are items
	asks   bool // of a scope: it has OnPanic
	end    deedEnd
	parts  [][]deed // what handlers in it do
}

type stepKind uint8

const (
	doStart stepKind = iota
	doGo
	doAwait
	doWait
	doAwaitAll
	doCancel
	doDone
	doSleep
	doTouch // asks everything of its context
	doHang  // an hour, unless it is stopped
	doScope
	doWithTimeout // the rest of the handler under a context with a timeout
	doWithCancel  // a context that is cancelled by another goroutine
	doWithoutCancel
	doWithValue
	doRace
	doAny
	doAll
	doSettle
	doHedge
	doQuorum
	doForEach
	doMap
	doForkJoin
	doCompleted
	doPoll
	doPromise
	doShield
	doOnExit
	doDoomed // a task that would take an hour, and is cancelled through its handle
	stepKinds
)

func (k stepKind) String() string {
	return [...]string{"start", "go", "await", "wait", "awaitall", "cancel", "done", "sleep", "touch", "hang", "scope", "withtimeout", "withcancel",
		"withoutcancel", "withvalue", "race", "any", "all", "settle", "hedge", "quorum", "foreach", "map", "forkjoin", "completed", "poll", "promise", "shield", "onexit", "doomed"}[k]
}

// taskBits say which options a task has.
type taskBits uint16

const (
	withTimeout taskBits = 1 << iota
	withGrace
	withAbort
	withDiscard
	withExecutor
	withDaemon
	withRestart
	withStopOn
	withLeader
)

// deedEnd is how a handler ends.
type deedEnd uint8

const (
	endValue deedEnd = iota // a value, whatever its steps came to
	endFirst                // the first error of a deed, else a value
	endError
	endPanic
	endGoexit
)

func (s deed) String() string {
	var b strings.Builder
	s.write(&b, "")
	return b.String()
}

func (s deed) write(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%s%v n=%d d=%v opts=%09b limit=%d end=%d asks=%v\n", indent, s.what, s.n, s.d, s.opts, s.limit, s.end, s.asks)
	for _, p := range s.parts {
		fmt.Fprintf(b, "%s {\n", indent)
		for _, s := range p {
			s.write(b, indent+"  ")
		}
		fmt.Fprintf(b, "%s }\n", indent)
	}
}

// A maker makes a program.
type maker struct {
	*rand.Rand
	tasks  int  // that may still be started
	hang   bool // handlers may wait for an hour
	panics bool
	kinds  []stepKind // this program has only these: few kinds at a time meet more often
}

// makeProgram returns a scope that is to be run.
func makeProgram(r *rand.Rand) deed {
	m := &maker{Rand: r, tasks: 3 + r.IntN(4), hang: r.IntN(3) == 0, panics: r.IntN(8) == 0}
	for k := range stepKinds {
		if k != doHang && (k <= doTouch && r.IntN(3) > 0 || r.IntN(4) == 0) {
			m.kinds = append(m.kinds, k)
		}
	}
	switch r.IntN(4) {
	case 0: // waits under derived contexts, whose waiters pass from one to the next
		m.kinds = []stepKind{doAwait, doWait, doSleep, doWithCancel, doWithTimeout, doWithValue, doWithCancel, doWithTimeout}
	case 1, 2: // only two or three kinds, besides
		m.kinds = m.kinds[:0]
		for range 2 + r.IntN(2) {
			if k := stepKind(r.IntN(int(stepKinds))); k != doHang {
				m.kinds = append(m.kinds, k)
			}
		}
	}
	m.kinds = append(m.kinds, doStart, doGo, doAwait)
	s := m.scope(0)
	if m.hang {
		s.d = m.millis(5) // which ends all that hangs
	}
	return s
}

func (m *maker) millis(n int) time.Duration { return time.Duration(1+m.IntN(n)) * time.Millisecond }

func (m *maker) scope(depth int) deed {
	s := deed{what: doScope, parts: [][]deed{m.steps(depth + 1)}, end: endFirst}
	if m.IntN(3) == 0 {
		s.limit = 1 + m.IntN(2)
	}
	if m.IntN(4) == 0 {
		s.d = m.millis(3)
	}
	if m.IntN(4) == 0 {
		s.opts |= withExecutor
	}
	s.n = m.IntN(8)
	if m.IntN(2) == 0 {
		s.end = endValue
	}
	s.asks = m.panics && m.IntN(2) == 0
	return s
}

// steps returns what one handler does.
func (m *maker) steps(depth int) (all []deed) {
	for range 1 + m.IntN(4-min(depth, 2)) {
		all = append(all, m.deed(depth))
	}
	if m.hang && depth > 1 && m.IntN(4) == 0 {
		all = append(all, deed{what: doHang})
	}
	return all
}

func (m *maker) deedEnd() deedEnd {
	switch n := m.IntN(10); {
	case n >= 7 && m.panics:
		return endPanic + deedEnd(m.IntN(2))
	case n < 5:
		return endValue
	case n < 8:
		return endFirst
	default:
		return endError
	}
}

// taskBits returns options of a task: a quarter of them.
func (m *maker) taskBits() (bits taskBits) {
	for bit := withTimeout; bit <= withLeader; bit <<= 1 {
		if m.IntN(4) == 0 {
			bits |= bit
		}
	}
	return bits
}

func (m *maker) deed(depth int) deed {
	s := deed{what: m.kinds[m.IntN(len(m.kinds))], n: m.IntN(16), end: m.deedEnd(), opts: m.taskBits()}
	if m.IntN(3) == 0 {
		s.d = m.millis(3)
	}
	handlers := 0
	switch s.what {
	case doStart, doGo, doPoll, doPromise, doShield, doOnExit, doWithTimeout, doWithCancel, doWithoutCancel, doWithValue:
		handlers = 1
	case doRace, doAny, doAll, doSettle, doHedge, doQuorum, doForEach, doMap, doForkJoin, doCompleted:
		handlers = 2 + m.IntN(2)
		s.limit = m.IntN(3)
		if s.what == doMap || s.what == doCompleted || s.what == doForEach {
			s.repeat = 1 + m.IntN(2)
		}
	case doScope:
		if m.tasks > 0 && depth < 3 {
			return m.scope(depth)
		}
		s.what = doSleep
	}
	if handlers > m.tasks || depth >= 4 && handlers > 0 {
		return deed{what: doSleep, d: s.d}
	}
	if s.what != doWithTimeout && s.what != doWithCancel && s.what != doWithValue {
		m.tasks -= handlers
	}
	if s.end == endGoexit && s.what != doStart && s.what != doGo {
		s.end = endPanic // on the caller's goroutine it would be the end of the program
	}
	without := m.hang
	if s.what == doWithoutCancel || s.what == doShield || s.what == doOnExit {
		m.hang = false // nobody would end it
	}
	for range handlers {
		s.parts = append(s.parts, m.steps(depth+1))
	}
	m.hang = without
	return s
}
