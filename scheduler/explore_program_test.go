//go:build explore

package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/internal/explore"
	"github.com/ambit-go/ambit/scheduler"
)

// This file makes small programs by chance: a pool, workers, and clients that
// use them. A program is data, so it does not depend on the order in which it
// runs.

// A workload is a program.
type workload struct {
	pool    poolKind
	places  int
	refuses uint8         // which of eight requests a pool that refuses does, as bits
	scoped  bool          // the workers belong to a scope
	fails   bool          // which ends with an error
	limit   time.Duration // of the scope; 0: none
	workers []workerSpec
	clients [][]action
	end     int // how the workers are ended, unless by their scope
}

type workerSpec struct {
	batch, capacity int
	full            scheduler.Full
	slice           bool
	closeOnPanic    bool
}

// An action is one thing that a client does.
type action struct {
	what   actionKind
	worker int
	n      int
	d      time.Duration
	body   bodyKind
}

type actionKind uint8

const (
	doPost actionKind = iota
	doPostAll
	doSchedule
	doAfter
	doEvery
	doHour // in an hour: nobody may wait for it
	doCancel
	doCancelPending
	doSubmit
	doCall
	doWait
	doClose
	doDrain
	doSleep
	doStats
	actionKinds
)

// bodyKind is what a task does.
type bodyKind uint8

const (
	returns bodyKind = iota
	sleeps
	reposts // posts on its own worker
	callsOn // calls the next worker, which may call it
	panics
	exits
	bodyKinds
)

type poolKind uint8

const (
	freePool      poolKind = iota
	blockingPool           // has few places and blocks while there is none
	tryPool                // the same, and can be asked without blocking
	refusingPool           // refuses some tasks
	fickleTryPool          // can be asked without blocking, and refuses some requests of either kind
	inlinePool
	poolKinds
)

func (l *workload) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pool=%d places=%d refuses=%08b scoped=%v fails=%v limit=%v end=%d\n", l.pool, l.places, l.refuses, l.scoped, l.fails, l.limit, l.end)
	for _, w := range l.workers {
		fmt.Fprintf(&b, "  worker %+v\n", w)
	}
	names := [...]string{"post", "postall", "schedule", "after", "every", "hour", "cancel", "cancelpending", "submit", "call", "wait", "close", "drain", "sleep", "stats"}
	for i, c := range l.clients {
		fmt.Fprintf(&b, "  client %d:", i)
		for _, a := range c {
			fmt.Fprintf(&b, " %s(worker %d, n %d, %v, body %d)", names[a.what], a.worker, a.n, a.d, a.body)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func bounded(w workerSpec) bool { return w.capacity > 0 }

func makeWorkload(r *rand.Rand) *workload {
	l := &workload{pool: poolKind(r.IntN(int(poolKinds))), places: 1 + r.IntN(2), scoped: r.IntN(2) == 0, fails: r.IntN(3) == 0, end: r.IntN(4), refuses: uint8(r.IntN(256))}
	if r.IntN(4) == 0 {
		l.limit = time.Duration(1+r.IntN(3)) * time.Millisecond
	}
	for range 1 + r.IntN(2) {
		w := workerSpec{batch: 1 + r.IntN(3), slice: r.IntN(6) == 0, closeOnPanic: r.IntN(6) == 0}
		if r.IntN(3) == 0 {
			w.capacity, w.full = 1+r.IntN(2), scheduler.Full(r.IntN(4))
		}
		l.workers = append(l.workers, w)
	}
	kinds := []actionKind{doPost, doSchedule}
	for k := range actionKinds {
		if r.IntN(2) == 0 {
			kinds = append(kinds, k)
		}
	}
	wild := r.IntN(4) == 0
	for range 2 + r.IntN(2) {
		var c []action
		for range 1 + r.IntN(4) {
			a := action{what: kinds[r.IntN(len(kinds))], worker: r.IntN(len(l.workers)), n: r.IntN(8), d: time.Duration(r.IntN(3)) * time.Millisecond}
			if a.body = bodyKind(r.IntN(int(bodyKinds))); a.body >= panics && !wild {
				a.body = returns
			}
			if a.body == callsOn && (l.pool == blockingPool || l.pool == refusingPool || slices.ContainsFunc(l.workers, bounded)) {
				a.body = returns // it may wait for a place that it holds
			}
			if l.workers[a.worker].capacity > 0 && a.body == reposts || l.pool == inlinePool && a.body >= panics {
				a.body = returns // it would wait for itself, or end the client
			}
			if a.what == doEvery {
				a.body = returns // one that takes its period would never let an Inline pool's client go
			}
			if held := a.what == doHour || a.what == doEvery || a.what == doAfter; held && l.workers[a.worker].capacity > 0 {
				a.what = doPost // a client that waits for this place would wait for ever
			}
			c = append(c, a)
		}
		l.clients = append(l.clients, c)
	}
	return l
}

// A pool is the executor of a program. It is built of the explorer's
// primitives, so that the driver knows what waits for a place.
type pool struct {
	mu    explore.Mutex
	room  explore.Cond
	free  int
	asked int
}

var errRefused = errors.New("refused")

// executor returns the pool of l.
func (l *workload) executor() (scheduler.Executor, *pool) {
	p := &pool{free: l.places}
	p.room.L = &p.mu
	switch l.pool {
	case freePool:
		return scheduler.Goroutines(), nil
	case inlinePool:
		return scheduler.Inline(), nil
	case blockingPool:
		return scheduler.ExecutorFunc(p.Execute), p
	case refusingPool:
		return scheduler.ExecutorFunc(fickle{p, l.refuses}.Execute), p
	case fickleTryPool:
		return fickle{p, l.refuses}, p
	default:
		return p, p
	}
}

// Execute runs task on a goroutine and blocks while there is no place.
func (p *pool) Execute(task func()) error {
	p.mu.Lock()
	for p.free == 0 {
		p.room.Wait()
	}
	p.free--
	p.mu.Unlock()
	p.run(task)
	return nil
}

// TryExecute runs task on a goroutine if there is a place.
func (p *pool) TryExecute(task func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == 0 {
		return false
	}
	p.free--
	p.run(task)
	return true
}

// fickle is a pool that refuses some requests.
type fickle struct {
	*pool
	which uint8
}

func (p fickle) Execute(task func()) error {
	if p.refuses() {
		return errRefused
	}
	return p.pool.Execute(task)
}

func (p fickle) TryExecute(task func()) bool { return !p.refuses() && p.pool.TryExecute(task) }

func (p fickle) refuses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return p.which>>(p.asked%8)&1 == 1
}

func (p *pool) run(task func()) {
	of := new(byte)
	explore.Born(of)
	go func() {
		defer explore.Start("pool", of)()
		defer func() {
			p.mu.Lock()
			p.free++
			p.room.Signal()
			p.mu.Unlock()
		}()
		task()
	}()
}

// A job is one task and what became of it.
type job struct {
	worker, client, index int
	ordered               bool // it runs after what its client has scheduled before
	periodic              bool
	body                  bodyKind
	ran                   int
	cancelled             bool // Cancel has said that it never starts
	task                  *scheduler.Task
}

// A bench runs one program.
type bench struct {
	w       *explore.World
	l       *workload
	mu      explore.Mutex // guards what follows and the fields of jobs
	running []int         // by worker
	last    map[[2]int]int
	jobs    []*job
	checks  []func() error
	workers []*scheduler.ExecutorWorker
}

func (b *bench) locked(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// run is a task: it holds j's worker to what that promises.
func (b *bench) run(j *job, ctx context.Context) {
	b.locked(func() {
		j.ran++
		b.running[j.worker]++
		who := [2]int{j.worker, j.client}
		switch {
		case b.running[j.worker] > 1:
			b.w.Failf("two tasks of a worker run at a time")
		case j.ran > 1 && !j.periodic:
			b.w.Failf("a task ran %d times", j.ran)
		case j.cancelled:
			b.w.Failf("a task ran that was cancelled")
		case j.ordered && b.last[who] > j.index:
			b.w.Failf("out of order: %d after %d of one client", j.index, b.last[who])
		}
		if j.ordered {
			b.last[who] = j.index
		}
	})
	defer b.locked(func() { b.running[j.worker]-- })
	b.w.Point("task")
	switch j.body {
	case sleeps:
		time.Sleep(time.Millisecond)
	case reposts:
		again := &job{worker: j.worker, client: -1, body: returns}
		_ = b.workers[j.worker].Post(func() { b.run(again, nil) })
	case callsOn:
		if ctx != nil {
			on := (j.worker + 1) % len(b.workers)
			b.settled(scheduler.Call(ctx, b.workers[on], b.value(&job{worker: on, client: -1, body: j.body})))
		}
	case panics:
		panic("planted")
	case exits:
		exit()
	}
}
