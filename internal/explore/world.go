package explore

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A Level says which accesses are points.
type Level uint8

const (
	Mixed   Level = iota // drawn for each schedule
	Hand                 // only World.Point and the starts of goroutines
	Locks                // these and every Lock
	Atomics              // these and every access to an atomic
)

func (l Level) String() string { return [...]string{"mixed", "hand", "locks", "atomics"}[l] }

// A World is one schedule: a program that runs under the driver.
type World struct {
	level  Level
	rand   *rand.Rand
	driver uintptr   // its goroutine; set before there is another
	began  time.Time // in the bubble
	tracer *tracer   // nil unless the schedule is to be told

	mu      sync.Mutex // guards what follows; held for a moment, never while a goroutine is stopped
	gors    map[uintptr]*gor
	fresh   []*gor // have come to their first point since the driver looked
	all     []*gor // in the order of their numbers
	objects map[any]int
	held    map[*Mutex]struct{}
	pools   map[*Pool][]any
	atEnd   []func() error
	ended   bool // the program has returned
	killing bool // no goroutine goes beyond its next point
	failure error
}

// active is the schedule under way, nil if there is none.
var active atomic.Pointer[World]

func newWorld(seed uint64, level Level) *World {
	return &World{
		level: level, rand: rand.New(rand.NewPCG(seed, 0)), driver: getg(), began: time.Now(),
		gors: make(map[uintptr]*gor), objects: make(map[any]int),
		held: make(map[*Mutex]struct{}), pools: make(map[*Pool][]any),
	}
}

// A gor is a goroutine of the bubble.
type gor struct {
	number int    // from 1, in the order in which the driver saw it
	name   string // what it is, where it said so
	key    key
	wake   chan struct{} // the driver lets it go on

	op      op   // guarded by world.mu
	stopped bool // it is at op; guarded by world.mu
}

// A key orders goroutines that are new at the same decision, so that they get
// the same numbers each time: by what they are at work for, which was seen
// before they were.
type key struct {
	object  int // its id
	what    string
	arrival int
}

// An op is what a goroutine is about to do.
type op struct {
	kind   opKind
	mutex  *Mutex // for the kinds that need it
	object any
	what   string // of opPoint
}

type opKind uint8

const (
	opPoint  opKind = iota
	opLock          // goes on when mutex is free, which it then holds
	opWait          // waits for a signal
	opRelock        // as opLock, after a signal
	opTryLock
	opLoad
	opStore
	opAdd
	opSwap
)

func (k opKind) String() string {
	return [...]string{"", "lock", "wait", "wake and lock", "trylock", "load", "store", "add", "swap"}[k]
}

// bubbleEnds is after every time in a bubble, whose clock begins in 2000, and
// before every time outside.
const bubbleEnds = 1_300_000_000_000_000_000

// here returns the world and the goroutine that runs, nil if it is none of the
// world's: outside the bubble, or its driver.
func here() (*World, *gor) {
	w := active.Load()
	if w == nil || time.Now().UnixNano() > bubbleEnds {
		return nil, nil
	}
	id := getg()
	if id == w.driver {
		return nil, nil
	}
	w.mu.Lock()
	g := w.gors[id]
	if g == nil {
		g = w.newLocked(id)
	}
	w.mu.Unlock()
	return w, g
}

// newLocked registers a goroutine that has not been seen, or begins as one that
// has: when a goroutine ends nobody is told, and its id may come again. If the
// new one does not say that it begins it goes by the name of the old, which
// does no harm.
func (w *World) newLocked(id uintptr) *gor {
	g := &gor{wake: make(chan struct{})}
	w.gors[id] = g
	return g
}

// idLocked returns the number of an object: 1 for the first that was seen.
func (w *World) idLocked(object any) int {
	if object == nil {
		return 0
	}
	id, ok := w.objects[object]
	if !ok {
		id = len(w.objects) + 1
		w.objects[object] = id
	}
	return id
}

// stop is a point: g waits until the driver picks it.
func (w *World) stop(g *gor, o op) {
	if w.level < Locks && o.kind == opLock && w.lockNow(g, o.mutex) {
		return
	}
	w.mu.Lock()
	if w.killing {
		w.mu.Unlock()
		runtime.Goexit()
	}
	if o.kind == opWait && g.op.kind == opRelock { // signalled before it came here
		o.kind = opRelock
	}
	g.op, g.stopped = o, true
	if g.number == 0 && g.key.arrival == 0 {
		if g.key.object == 0 {
			g.key.object = w.idLocked(o.subject())
		}
		w.fresh = append(w.fresh, g)
		g.key.arrival = len(w.fresh)
	}
	if w.tracer != nil {
		w.tracer.at(g)
	}
	w.mu.Unlock()
	<-g.wake
	if w.dead() {
		runtime.Goexit()
	}
}

// lockNow makes g the holder of m without a point, if m is free.
func (w *World) lockNow(g *gor, m *Mutex) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killing || !m.freeLocked(w) {
		return false
	}
	m.holdLocked(w, g)
	return true
}

// touch is stop for what is a point only at the level Atomics.
func (w *World) touch(g *gor, o op) {
	if w.level >= Atomics {
		w.stop(g, o)
	} else if w.dead() {
		runtime.Goexit()
	}
}

func (w *World) dead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.killing
}

// Rand is the program's source of choices. It is the same for all schedules of
// one program.
func (w *World) Rand() *rand.Rand { return w.rand }

// Elapsed returns how much virtual time has passed since the program began.
func (w *World) Elapsed() time.Duration { return time.Since(w.began) }

// Point is a point of the program itself.
func (w *World) Point(what string) {
	if w, g := here(); w != nil {
		w.stop(g, op{kind: opPoint, what: what})
	}
}

// Go runs f on a goroutine of its own.
func (w *World) Go(name string, f func()) {
	of := new(byte)
	Born(of)
	go func() {
		defer Start(name, of)()
		f()
	}()
}

// Describe adds what the program is to the trace of a failure.
func (w *World) Describe(program fmt.Stringer) {
	if w.tracer != nil {
		w.tracer.program = program.String()
	}
}

// AtEnd has the driver call check when the program has ended and nothing goes
// on any more. Its error is a failure.
func (w *World) AtEnd(check func() error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.atEnd = append(w.atEnd, check)
}

// Failf notes a failure, unless there is one already. The calling goroutine goes
// on to its next point, and no further.
func (w *World) Failf(format string, args ...any) { w.fail(fmt.Errorf(format, args...)) }

func (w *World) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == nil {
		w.failure = err
	}
}
