// Package group has callers that come at the same time served together, without a
// timer: while one round is served the next gathers, and is served when the one before
// is done.
package group

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// ErrLeft is in the error of a caller that has left while its item was being served.
var ErrLeft = errors.New("taskqueue: the end of the call was not waited for")

// errPanicked is the error of those whose items were served by a call that has
// panicked. One of the callers raises the panic.
var errPanicked = errors.New("taskqueue: the call that served this together with others has panicked")

// A Group serves items of callers together. The zero value is not ready: use New.
type Group[T any] struct {
	serve    func(items []T) error
	weigh    func(item T) int
	most     int
	parallel int

	mu       sync.Mutex
	rounds   []*round[T] // that nobody serves yet; the last of them gathers
	serving  int         // goroutines that serve a round, or are about to take one
	starting int         // those of them that are about to
	idle     sync.Cond   // serving has become 0
}

// A round is what is served together.
type round[T any] struct {
	entries []entry[T]
	weight  int
	taken   bool          // it is being served, or was
	done    chan struct{} // closed when it was served; then err and panics are set
	err     error
	panics  chan any // the panic of serve, for one of the callers
}

type entry[T any] struct {
	item T
	gone bool // its caller has left before the round was taken
}

// New returns a group that calls serve with items that weigh at most most together, or
// with one that weighs more. serve is called up to parallel times at the same time, on
// goroutines that end when nobody waits. A nil weigh: each weighs 1.
func New[T any](most, parallel int, weigh func(item T) int, serve func(items []T) error) *Group[T] {
	if weigh == nil {
		weigh = func(T) int { return 1 }
	}
	g := &Group[T]{serve: serve, weigh: weigh, most: most, parallel: parallel}
	g.idle.L = &g.mu
	return g
}

// Do has item served and returns when it was, with the error of the call that served
// it. Items of one goroutine are served in the order of its calls. If ctx ends before
// the item is being served it is not, and the error is the cause of ctx. A panic of
// serve is raised by one of the callers whose items it had, as a [*Panic].
func (g *Group[T]) Do(ctx context.Context, item T) error {
	r, i := g.join(item)
	if !r.wait(ctx) && g.leave(r, i) {
		return context.Cause(ctx)
	}
	<-r.done
	return r.result()
}

// DoOrLeave is Do for items that serve may use when their callers have gone: if ctx
// ends while the item is being served it returns at once, with an error that matches
// [ErrLeft] and the cause of ctx.
func (g *Group[T]) DoOrLeave(ctx context.Context, item T) error {
	r, i := g.join(item)
	switch {
	case r.wait(ctx):
		return r.result()
	case g.leave(r, i):
		return context.Cause(ctx)
	}
	return errors.Join(ErrLeft, context.Cause(ctx))
}

// join adds item to the round that gathers and sees that it will be served.
func (g *Group[T]) join(item T) (r *round[T], place int) {
	weight := g.weigh(item)
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.rounds); n > 0 && g.rounds[n-1].weight+weight <= g.most {
		r = g.rounds[n-1]
	} else {
		r = &round[T]{done: make(chan struct{}), panics: make(chan any, 1)}
		g.rounds = append(g.rounds, r)
	}
	r.entries = append(r.entries, entry[T]{item: item})
	r.weight += weight
	g.startLocked()
	return r, len(r.entries) - 1
}

// startLocked starts a goroutine if there is a round for it.
func (g *Group[T]) startLocked() {
	if g.serving < g.parallel && g.starting < len(g.rounds) {
		g.serving++
		g.starting++
		go g.run()
	}
}

// leave takes an item out of a round. It reports false if that is being served.
func (g *Group[T]) leave(r *round[T], place int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !r.taken {
		r.entries[place].gone = true
	}
	return !r.taken
}

// run serves one round. There is one that is not taken: each goroutine takes one, and
// no more are started than there are rounds.
func (g *Group[T]) run() {
	g.mu.Lock()
	r := g.rounds[0]
	g.rounds = g.rounds[1:]
	g.starting--
	r.taken = true
	g.mu.Unlock()

	defer func() { // also if serve panics or ends the goroutine: nobody must wait for ever
		if v := recover(); v != nil {
			r.panics <- &Panic{v, debug.Stack()}
		}
		close(r.done)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.serving--
		g.startLocked()
		if g.serving == 0 {
			g.idle.Broadcast()
		}
	}()
	items := make([]T, 0, len(r.entries))
	for _, e := range r.entries {
		if !e.gone {
			items = append(items, e.item)
		}
	}
	if len(items) > 0 {
		r.err = errPanicked
		r.err = g.serve(items)
	}
}

// wait reports whether r was served before ctx has ended.
func (r *round[T]) wait(ctx context.Context) bool {
	select {
	case <-r.done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-r.done: // both at the same time
		return true
	default:
		return false
	}
}

// result is what a caller is told when r is done.
func (r *round[T]) result() error {
	select {
	case v := <-r.panics:
		panic(v)
	default:
		return r.err
	}
}

// Waiting is how many items wait for their round to be served.
func (g *Group[T]) Waiting() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.rounds {
		for _, e := range r.entries {
			if !e.gone {
				n++
			}
		}
	}
	return n
}

// Idle waits until nothing is served.
func (g *Group[T]) Idle() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.serving > 0 {
		g.idle.Wait()
	}
}

// A Panic is a panic of serve, with the stack of the goroutine on which it was.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the value if that is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}
