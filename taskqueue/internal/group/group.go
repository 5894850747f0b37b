// Package group has callers that come at the same time served together, without a timer: while some
// rounds are served the next gathers.
//
// The batch of package batch belongs to a scope, and makes one flush at a time. A store belongs to
// none: it is used until it is closed, while the root of package async shuts down, too; and a server
// is kept busy by two rounds.
package group

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
)

// ErrLeft is in the error of a caller that has left while its item was being served.
var ErrLeft = errors.New("taskqueue: the end of the call was not waited for")

// errEnded is the error of those whose items were served by a call that has ended its goroutine.
var errEnded = errors.New("taskqueue: the call that served this together with others has not returned")

// A Group serves items of callers together. The zero value is not ready: use New.
type Group[T any] struct {
	serve func(items []T) error
	weigh func(item T) int
	most  int
	slots chan struct{} // has one element for each round that is being served

	mu        sync.Mutex
	gathering *round[T] // takes more items; nil: there is none
	rounds    int       // that are not over
	waiting   int       // items of rounds that nobody serves yet
	idle      sync.Cond // rounds has become 0
}

// A round is what is served together.
type round[T any] struct {
	items  []T
	left   []bool // whose callers have left before the round was taken
	weight int
	taken  bool          // it is being served, or was
	done   chan struct{} // closed when it was served; then err is set
	err    error
}

// New returns a group that calls serve with items that weigh at most most together, or with one that
// weighs more. serve is called up to parallel times at the same time, each on a goroutine of its own.
// A nil weigh: each weighs 1.
func New[T any](most, parallel int, weigh func(item T) int, serve func(items []T) error) *Group[T] {
	if weigh == nil {
		weigh = func(T) int { return 1 }
	}
	g := &Group[T]{serve: serve, weigh: weigh, most: most, slots: make(chan struct{}, parallel)}
	g.idle.L = &g.mu
	return g
}

// Do has item served and returns when it was, with the error of the call that served it. Items of one
// goroutine are served in the order of its calls. If ctx ends before the item is being served it is
// not, and the error is the cause of ctx. If it ends later the item may be in use when Do returns: the
// error matches [ErrLeft] and the cause. A panic of serve is an error for all whose items it had.
func (g *Group[T]) Do(ctx context.Context, item T) error {
	r, place := g.join(item)
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	if g.leave(r, place) {
		return context.Cause(ctx)
	}
	select {
	case <-r.done: // both at the same time
		return r.err
	default:
		return errors.Join(ErrLeft, context.Cause(ctx))
	}
}

// join adds item to the round that gathers, or to a new one.
func (g *Group[T]) join(item T) (r *round[T], place int) {
	weight := g.weigh(item)
	g.mu.Lock()
	defer g.mu.Unlock()
	if r = g.gathering; r == nil || r.weight+weight > g.most {
		r = &round[T]{done: make(chan struct{})}
		g.gathering = r
		g.rounds++
		go g.run(r)
	}
	r.items, r.left, r.weight = append(r.items, item), append(r.left, false), r.weight+weight
	g.waiting++
	return r, len(r.items) - 1
}

// leave takes an item out of a round. It reports false if that is being served.
func (g *Group[T]) leave(r *round[T], place int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !r.taken {
		r.left[place] = true
		g.waiting--
	}
	return !r.taken
}

// run serves a round when there is a slot for it: the rounds have them in their order.
func (g *Group[T]) run(r *round[T]) {
	g.slots <- struct{}{}
	g.gather(r)
	items := g.take(r)
	defer func() { // also if serve panics or ends the goroutine: nobody must wait for ever
		if v := recover(); v != nil {
			r.err = fmt.Errorf("taskqueue: a panic: %v\n\n%s", v, debug.Stack())
		}
		close(r.done)
		<-g.slots
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.rounds--; g.rounds == 0 {
			g.idle.Broadcast()
		}
	}()
	if len(items) > 0 {
		r.err = errEnded
		r.err = g.serve(items)
	}
}

// gather lets other goroutines run as long as that brings more items: callers that are about to come.
func (g *Group[T]) gather(r *round[T]) {
	for n, before := 0, -1; n != before; {
		runtime.Gosched()
		g.mu.Lock()
		n, before = len(r.items), n
		g.mu.Unlock()
	}
}

// take ends the gathering of a round, and returns the items whose callers have not left.
func (g *Group[T]) take(r *round[T]) (items []T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.taken = true; g.gathering == r {
		g.gathering = nil
	}
	for i, item := range r.items {
		if !r.left[i] {
			items = append(items, item)
		}
	}
	g.waiting -= len(items)
	return items
}

// Waiting is how many items wait for their round to be served.
func (g *Group[T]) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

// Idle waits until nothing is served, and nothing waits.
func (g *Group[T]) Idle() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.rounds > 0 {
		g.idle.Wait()
	}
}
