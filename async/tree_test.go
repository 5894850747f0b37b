package async_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// The promise of the package is that nothing outlives its scope and nothing
// that went wrong is lost. Here random trees of tasks try to break it. A tree
// is decoded from bytes, so a seed makes one, a fuzzer makes more, and a tree
// that fails can be made smaller by leaving bytes out.

// treeNode is the bookkeeping for one handler, body or hook: deliberately dumb.
type treeNode struct {
	id      int
	parent  *treeNode
	started bool
	ended   bool
	hooks   int   // abort hooks that ran
	hooking bool  // one is running
	err     error // the unique error it failed or panicked with
	loud    bool  // by panic
	told    bool  // its owner was told a timeout or has cancelled it
}

// treeRun is one run of one tree.
type treeRun struct {
	data  []byte
	mu    sync.Mutex // guards what follows
	pos   int
	nodes []*treeNode
	sinks []error // every error that user code was given
	wrong []string
	lie   bool // planted: a handler's end is booked late
}

func (r *treeRun) fault(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

// next decodes a choice among n; 0 when the bytes are used up.
func (r *treeRun) next(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pos >= len(r.data) {
		return 0
	}
	r.pos++
	return int(r.data[r.pos-1]) % n
}

func (r *treeRun) node(parent *treeNode) *treeNode {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := &treeNode{id: len(r.nodes), parent: parent}
	r.nodes = append(r.nodes, n)
	return n
}

func (r *treeRun) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// given books an error that user code was given.
func (r *treeRun) given(err error) {
	if err != nil {
		r.set(func() { r.sinks = append(r.sinks, err) })
	}
}

// under reports whether n is below top.
func (n *treeNode) under(top *treeNode) bool {
	for n = n.parent; n != nil; n = n.parent {
		if n == top {
			return true
		}
	}
	return false
}

// closed checks that nothing below n goes on, now that n's scope has returned.
func (r *treeRun) closed(n *treeNode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.nodes {
		if m.under(n) && m.started && !m.ended || m.under(n) && m.hooking {
			r.wrong = append(r.wrong, fmt.Sprintf("node %d outlives the scope of node %d", m.id, n.id))
		}
	}
}

// handler is the body of node n: a few steps, then an end.
func (r *treeRun) handler(ctx context.Context, n *treeNode, depth int) (v int, err error) {
	r.set(func() { n.started = true })
	defer func() {
		if r.lie {
			time.AfterFunc(time.Hour, func() { r.set(func() { n.ended = true }) })
			return
		}
		r.set(func() { n.ended = true })
	}()
	var futures []*async.Future[int]
	var owners []*treeNode
	for range r.next(5) {
		switch r.next(13) {
		case 0:
			time.Sleep(time.Duration(r.next(40)) * time.Millisecond) // stubborn
		case 1:
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(r.next(90)) * time.Millisecond):
			}
		case 2, 3:
			if depth > 0 {
				r.goTask(ctx, n, depth-1)
			}
		case 4, 5:
			if depth > 0 {
				f, m := r.execute(ctx, n, depth-1)
				futures, owners = append(futures, f), append(owners, m)
			}
		case 6, 7:
			if len(futures) > 0 {
				i := r.next(len(futures))
				r.await(ctx, futures[i], owners[i])
			}
		case 8:
			if depth > 0 {
				if err := r.scope(ctx, n, depth-1); err != nil && r.next(2) == 0 {
					return 0, err
				}
			}
		case 9:
			r.exits(ctx, n)
		case 10:
			if len(futures) > 0 {
				i := r.next(len(futures))
				if futures[i].State() != async.Done {
					r.set(func() { owners[i].told = true })
					futures[i].Cancel(errors.New("cancelled by the tree"))
				}
			}
		case 11:
			if depth > 0 {
				short, cancel := context.WithTimeout(ctx, time.Duration(1+r.next(30))*time.Millisecond)
				defer cancel()
				r.goTask(short, n, depth-1)
			}
		case 12:
			f, p := async.NewPromise[int](ctx)
			async.Go(ctx, func(ctx context.Context) error {
				time.Sleep(time.Duration(r.next(20)) * time.Millisecond)
				p.Resolve(1)
				return nil
			})
			_, _ = f.Wait(ctx)
		}
	}
	return r.end(ctx, n)
}

// end is one of the ways a handler ends.
func (r *treeRun) end(ctx context.Context, n *treeNode) (int, error) {
	fail := func() error {
		err := fmt.Errorf("node %d failed", n.id)
		r.set(func() { n.err = err })
		return err
	}
	switch r.next(10) {
	case 0, 1:
		return 0, fail()
	case 2:
		err := fail()
		r.set(func() { n.loud = true })
		panic(err)
	case 3:
		runtime.Goexit()
		return 0, nil
	case 4:
		return 0, ctx.Err()
	default:
		return n.id, nil
	}
}

func (r *treeRun) options(n *treeNode) []async.TaskOption {
	opts := []async.TaskOption{async.Name(fmt.Sprintf("node-%d", n.id))}
	switch r.next(6) {
	case 0:
		opts = append(opts, async.Timeout(time.Duration(1+r.next(50))*time.Millisecond))
	case 1, 2:
		opts = append(opts, async.OnAbort(func(ctx context.Context, cause error) error {
			r.set(func() { n.hooks++; n.hooking = true })
			if cause == nil || ctx.Err() != nil {
				r.fault("node %d: hook with cause %v, ctx %v", n.id, cause, ctx.Err())
			}
			time.Sleep(time.Duration(r.next(20)) * time.Millisecond)
			r.set(func() { n.hooking = false })
			return nil
		}))
	case 3:
		opts = append(opts, async.Daemon())
	case 4:
		opts = append(opts, async.Grace(time.Duration(r.next(20))*time.Millisecond))
	}
	return opts
}

func (r *treeRun) goTask(ctx context.Context, parent *treeNode, depth int) {
	n := r.node(parent)
	async.Go(ctx, func(ctx context.Context) error {
		_, err := r.handler(ctx, n, depth)
		return err
	}, r.options(n)...)
}

func (r *treeRun) execute(ctx context.Context, parent *treeNode, depth int) (*async.Future[int], *treeNode) {
	n := r.node(parent)
	return async.Execute(ctx, func(ctx context.Context) (int, error) { return r.handler(ctx, n, depth) }, r.options(n)...), n
}

func (r *treeRun) await(ctx context.Context, f *async.Future[int], n *treeNode) {
	limit := time.Duration(r.next(4)) * 7 * time.Millisecond
	begin := time.Now()
	_, err := f.Await(ctx, limit)
	if late := time.Since(begin) - limit; limit > 0 && late > 25*time.Millisecond {
		r.fault("await of node %d came back %v late", n.id, late)
	}
	// It may have settled since it was told; Result would be given the outcome.
	if f.State() != async.Done || ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		r.set(func() { n.told = true })
	}
	r.given(err)
}

// scope opens a scope in node parent and checks it when it has returned.
func (r *treeRun) scope(ctx context.Context, parent *treeNode, depth int) (err error) {
	n := r.node(parent)
	var opts []async.ScopeOption
	switch r.next(5) {
	case 0:
		opts = append(opts, async.Limit(1+r.next(3)))
	case 1:
		opts = append(opts, async.Timeout(time.Duration(1+r.next(60))*time.Millisecond))
	}
	defer func() {
		r.closed(n)
		if v := recover(); v != nil {
			p, ok := v.(*async.PanicError)
			if !ok || len(p.Stack) == 0 {
				r.fault("scope of node %d panicked with %v", n.id, v)
			}
			err = p
		}
		r.given(err)
	}()
	return async.Scope(ctx, func(ctx context.Context) error {
		_, err := r.handler(ctx, n, depth)
		return err
	}, opts...)
}

// exits registers exit hooks, of which the last must run first, after all
// tasks of the scope.
func (r *treeRun) exits(ctx context.Context, n *treeNode) {
	var order []int
	for i := range 3 {
		async.OnExit(ctx, func(ctx context.Context, outcome error) error {
			if order = append(order, i); len(order) == 3 && !slices.Equal(order, []int{2, 1, 0}) {
				r.fault("exit hooks of node %d ran in the order %v", n.id, order)
			}
			if ctx.Err() != nil {
				r.fault("exit hook of node %d with a context that is done", n.id)
			}
			r.closed(n)
			return nil
		})
	}
}

// wasTold reports whether somebody was told of something else instead of n's
// error, or of the outcome of a task that n is part of.
func (n *treeNode) wasTold() bool {
	for ; n != nil; n = n.parent {
		if n.told {
			return true
		}
	}
	return false
}

// lost checks that every error was given to somebody, if nobody was told
// instead, and that hooks ran at most once.
func (r *treeRun) lost() {
	for _, n := range r.nodes {
		if n.hooks > 1 {
			r.fault("node %d: %d abort hooks", n.id, n.hooks)
		}
		if n.err == nil || !n.loud && n.wasTold() {
			continue
		}
		if !slices.ContainsFunc(r.sinks, func(err error) bool { return errors.Is(err, n.err) }) {
			r.fault("the error of node %d was lost", n.id)
		}
	}
}

// run runs the tree in a bubble of its own and returns what was wrong.
func (r *treeRun) run(t *testing.T) []string {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, check := asynctest.Root(t.Context())
		done := make(chan struct{})
		go func() { // a body that calls Goexit takes its goroutine along
			defer close(done)
			top := r.node(nil)
			r.set(func() { top.started, top.ended = true, true })
			_ = r.scope(ctx, top, 4)
		}()
		<-done
		if live := asynctest.Live(ctx); len(live) > 0 {
			r.fault("left at the root: %v", live)
		}
		r.given(check()) // errors that a body that called Goexit could not return
		r.lost()
		time.Sleep(2 * time.Hour) // for what was planted to end
	})
	return r.wrong
}

// smaller leaves out bytes of data for as long as what is left still fails.
func smaller(t *testing.T, data []byte) []byte {
	for size := len(data) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(data); {
			try := slices.Concat(data[:i], data[i+size:])
			if len((&treeRun{data: try}).run(t)) > 0 {
				data = try
			} else {
				i += size
			}
		}
	}
	return data
}

func treeBytes(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 7))
	data := make([]byte, 20+rng.IntN(200))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return data
}

func TestNothingOutlivesItsScopeAndNoErrorIsLost(t *testing.T) {
	for seed := range uint64(2000) {
		r := &treeRun{data: treeBytes(seed)}
		if wrong := r.run(t); len(wrong) > 0 {
			least := smaller(t, r.data)
			t.Fatalf("seed %d: %v\nas small as it gets: %v", seed, wrong, least)
		}
	}
}

// TestTheTreeFindsWhatIsPlanted shows that the check can fail.
func TestTheTreeFindsWhatIsPlanted(t *testing.T) {
	found := 0
	for seed := range uint64(20) {
		found += len((&treeRun{data: treeBytes(seed), lie: true}).run(t))
	}
	if found == 0 {
		t.Error("handlers that end after their scope were not found")
	}
}

func FuzzTree(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(treeBytes(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if wrong := (&treeRun{data: data[:min(len(data), 400)]}).run(t); len(wrong) > 0 {
			t.Fatalf("%v", wrong)
		}
	})
}
