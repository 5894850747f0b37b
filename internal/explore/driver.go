package explore

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// tick is how much time passes when that is chosen.
const tick = time.Millisecond

// An outcome is what came of one schedule.
type outcome struct {
	failure    error
	trace      string      // if it was to be told
	deviations []deviation // what was not the default
	steps      int
	leaked     bool // goroutines are left that nobody can end
}

// limits bound one schedule.
type limits struct {
	time  time.Duration // virtual
	steps int
	ticks int
}

// runOne runs program once, in a bubble of its own.
func runOne(t *testing.T, program func(*World), seed uint64, level Level, s strategy, l limits, tell bool) (out outcome) {
	defer func() {
		active.Store(nil)
		if v := recover(); v != nil {
			out.leaked = true // goroutines of a failed schedule are blocked where we cannot reach them
			if err, ok := v.(error); out.failure == nil && ok {
				out.failure = remain(err)
			} else if out.failure == nil {
				panic(v)
			}
		}
	}()
	before := runtime.NumGoroutine()
	synctest.Test(t, func(*testing.T) {
		w := newWorld(seed, level)
		if tell {
			w.tracer = new(tracer)
		}
		active.Store(w)
		go func() {
			defer func() {
				w.mu.Lock()
				w.ended = true
				w.mu.Unlock()
			}()
			defer Start("main", new(byte))()
			program(w)
		}()
		d := &driver{w: w, s: s, limits: l, before: before + 2} // the bubble's root and we
		d.run()
		out.failure, out.deviations, out.steps = w.failure, d.deviations, d.n
		if tell {
			out.trace = w.tracer.String()
		}
	})
	return out
}

// A driver decides the order of one schedule. It is the only goroutine of the
// bubble that is never at a point.
type driver struct {
	w          *World
	s          strategy
	limits     limits
	before     int // goroutines of the process that are not the schedule's
	current    *gor
	n          int // decisions
	ticks      int
	deviations []deviation
}

// run decides until nothing goes on any more, or the schedule has failed.
func (d *driver) run() {
	w := d.w
	for idle := 0; ; {
		synctest.Wait() // now all others are at points, or blocked elsewhere
		w.mu.Lock()
		w.admitLocked()
		enabled := w.enabledLocked()
		if w.failure == nil {
			w.failure = w.cycleLocked()
		}
		failed, ended := w.failure != nil, w.ended
		w.mu.Unlock()
		switch {
		case failed:
			d.kill()
			return
		case len(enabled) > 0:
			idle = 0
			d.decide(enabled)
		case ended:
			d.finish()
			return
		case w.Elapsed() > d.limits.time:
			w.fail(w.stuck(d.limits.time))
		default:
			time.Sleep(tick << min(idle/32, 6)) // whatever is next is a timer's
			idle++
		}
	}
}

// admitLocked gives numbers to goroutines that are new.
func (w *World) admitLocked() {
	slices.SortFunc(w.fresh, func(a, b *gor) int {
		if c := a.key.object - b.key.object; c != 0 {
			return c
		}
		if c := strings.Compare(a.key.what, b.key.what); c != 0 {
			return c
		}
		return a.key.arrival - b.key.arrival
	})
	for _, g := range w.fresh {
		w.all = append(w.all, g)
		g.number = len(w.all)
		if g.name == "" {
			g.name = fmt.Sprintf("g%d", g.key.object)
		}
	}
	w.fresh = w.fresh[:0]
}

// enabledLocked returns the goroutines that can go on.
func (w *World) enabledLocked() (enabled []*gor) {
	for _, g := range w.all {
		if !g.stopped || g.op.kind == opWait {
			continue
		}
		if (g.op.kind == opLock || g.op.kind == opRelock) && !g.op.mutex.freeLocked(w) {
			continue
		}
		enabled = append(enabled, g)
	}
	return enabled
}

// cycleLocked returns an error if goroutines wait for each other's locks.
func (w *World) cycleLocked() error {
	for _, first := range w.all {
		path := []string{}
		for g := first; g.stopped && (g.op.kind == opLock || g.op.kind == opRelock); {
			m := g.op.mutex
			if m.freeLocked(w) {
				break
			}
			path = append(path, fmt.Sprintf("%s waits for lock %d", g.name, w.idLocked(m)))
			if g = m.holder; g == first {
				return fmt.Errorf("lock cycle: %s, held by %s", strings.Join(path, ", held by "), g.name)
			}
			if len(path) > len(w.all) {
				break // a cycle that first is not on
			}
		}
	}
	return nil
}

// decide picks what goes on and lets it.
func (d *driver) decide(enabled []*gor) {
	if d.n++; d.n > d.limits.steps {
		d.w.fail(fmt.Errorf("not done after %d decisions", d.limits.steps))
		return
	}
	c := choice{n: d.n, enabled: enabled, current: slices.Index(enabled, d.current), tick: d.ticks < d.limits.ticks}
	i := d.s.pick(&c)
	if i != c.fallback() {
		d.deviations = append(d.deviations, c.deviation(i))
	}
	if i == letTimePass {
		d.ticks++
		d.w.tracer.add(d.n, "", "a millisecond passes", "")
		time.Sleep(tick)
		return
	}
	g := enabled[i]
	d.current = g
	d.w.letGo(g, d.n)
}

// letGo lets g do what it is about to do, and run to its next point.
func (w *World) letGo(g *gor, n int) {
	w.mu.Lock()
	w.tracer.goes(w, g, n)
	if o := &g.op; o.kind == opLock || o.kind == opRelock {
		o.mutex.holdLocked(w, g)
	}
	w.idLocked(g.op.subject()) // seen now, at the same decision in every replay
	g.stopped, g.op = false, op{}
	w.mu.Unlock()
	g.wake <- struct{}{}
}

// subject is what o is about, nil if nothing.
func (o op) subject() any {
	if o.mutex != nil {
		return o.mutex
	}
	return o.object
}

// finish looks at a program that has ended.
func (d *driver) finish() {
	if left := d.left(); left != "" {
		d.w.fail(fmt.Errorf("goroutines are left:\n%s", left))
		d.kill()
		return
	}
	for _, check := range d.w.atEnd {
		if err := check(); err != nil {
			d.w.fail(err)
		}
	}
}

// remain says that goroutines are left in the words of finish, if package synctest says so: left does not see them
// where as many other goroutines, which it counted as not the schedule's, have ended meanwhile.
func remain(err error) error {
	if strings.HasSuffix(err.Error(), "goroutines remain") {
		return fmt.Errorf("goroutines are left: %w", err)
	}
	return err
}

// left returns the stacks of the bubble's goroutines that have not ended.
func (d *driver) left() string {
	if runtime.NumGoroutine() <= d.before {
		return ""
	}
	return bubbleStacks()
}

// bubbleStacks returns the stacks of the goroutines of the calling one's bubble,
// the driver and its root left out.
func bubbleStacks() string {
	buf := make([]byte, 1<<20)
	all := bytes.Split(buf[:runtime.Stack(buf, true)], []byte("\n\n"))
	_, bubble, _ := bytes.Cut(all[0], []byte("synctest bubble "))
	bubble, _, _ = bytes.Cut(bubble, []byte("]"))
	tag := append([]byte("synctest bubble "), bubble...)
	tag = append(tag, ']')
	var left [][]byte
	for _, g := range all[1:] {
		head, _, _ := bytes.Cut(g, []byte("\n"))
		if bytes.Contains(head, tag) && !bytes.Contains(g, []byte("testing/synctest.testingSynctestTest")) &&
			!bytes.Contains(g, []byte("testing.testingSynctestTest")) && !bytes.Contains(g, []byte("internal/synctest.Run")) {
			left = append(left, g)
		}
	}
	return string(bytes.Join(left, []byte("\n\n")))
}

// stuck is the failure of a program that does not end.
func (w *World) stuck(limit time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := fmt.Sprintf("stuck: nothing can go on, for %v of virtual time", limit)
	for _, g := range w.all {
		if g.stopped {
			s += fmt.Sprintf("\n  %s: %s", g.name, w.describeLocked(g.op))
		}
	}
	if w.tracer != nil {
		s += "\n\n" + bubbleStacks()
	}
	return errors.New(s)
}

// kill ends the goroutines that are at points, one after the other, and those
// that come to one.
func (d *driver) kill() {
	w := d.w
	w.mu.Lock()
	w.killing = true
	for m := range w.held {
		m.holder = nil
		m.real.Unlock()
	}
	w.mu.Unlock()
	for {
		synctest.Wait()
		w.mu.Lock()
		w.admitLocked()
		i := slices.IndexFunc(w.all, func(g *gor) bool { return g.stopped })
		if i >= 0 {
			w.all[i].stopped = false
		}
		w.mu.Unlock()
		if i < 0 {
			return
		}
		w.all[i].wake <- struct{}{}
	}
}
