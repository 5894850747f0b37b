package async_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// run runs the tree in a bubble of its own and returns what was wrong.
func (r *treeRun) run(t *testing.T) []string {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, check := asynctest.Root(t.Context())
		done := make(chan struct{})
		go func() { // a body that calls Goexit takes its goroutine along
			defer close(done)
			top := r.node(nil, "top")
			r.set(func() { top.started, top.ended = true, true })
			_ = r.scope(ctx, top, 4)
		}()
		<-done
		strays := false
		r.set(func() { strays = slices.ContainsFunc(r.nodes, func(n *treeNode) bool { return n.stray }) })
		if strays {
			time.Sleep(time.Hour)
		}
		if live := asynctest.Live(ctx); len(live) > 0 {
			r.fault("left at the root: %v", live)
		}
		for range 2 { // detached tasks that have failed, then what nobody else was told
			r.given(nil, check())
		}
		synctest.Wait() // for a bare goroutine that was refused
		r.check()
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
			t.Fatalf("seed %d: %v\n%vas small as it gets: %v", seed, wrong, r, least)
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

// TestTheTreeCountsWhatAListHasLeftOut: what is in no list is lost, unless a list that
// is too long counts it.
func TestTheTreeCountsWhatAListHasLeftOut(t *testing.T) {
	for name, test := range map[string]struct {
		kept, dropped int
		lost          bool
	}{
		"all are counted":     {32, 8, false},
		"one is not counted":  {32, 7, true},
		"one is in no list":   {31, 8, true},
		"there is no number":  {32, 0, true},
		"more than there are": {32, 9, false},
	} {
		r := new(treeRun)
		scope := r.node(r.node(nil, "top"), "Scope")
		list := &async.ScopeError{Dropped: test.dropped}
		for i := range 40 {
			n := r.node(scope, "Go")
			n.err = fmt.Errorf("node %d failed", n.id)
			if i < test.kept {
				list.Errors = append(list.Errors, n.err)
			}
		}
		r.given(scope, list)
		if r.lost(); len(r.wrong) > 0 != test.lost {
			t.Errorf("%s: %v", name, r.wrong)
		}
	}
}

func FuzzTree(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(treeBytes(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &treeRun{data: data[:min(len(data), 400)]}
		if wrong := r.run(t); len(wrong) > 0 {
			t.Fatalf("%v\n%v", wrong, r)
		}
	})
}

// check looks at all nodes when the tree has ended.
func (r *treeRun) check() {
	for _, n := range r.nodes {
		if n.hooks > max(n.runs, 1) {
			r.fault("node %d: %d abort hooks", n.id, n.hooks)
		}
		given := 0
		if n.kept {
			given = 1
		}
		if n.hooked && n.values != given+n.discarded {
			r.fault("node %d: of %d values %d were given and %d discarded", n.id, n.values, given, n.discarded)
		}
	}
	r.lost()
}

// mustBeTold reports whether the error of n has to be given to somebody: not if it
// has none, if another run may have followed, if somebody was told of something else
// instead, if it lost a race, or if it stands in a daemon, which may have been stopped.
func (n *treeNode) mustBeTold() bool {
	return n.err != nil &&
		!n.is(func(n *treeNode) bool { return n.again || n.loser }) &&
		(n.loud || !n.is(func(n *treeNode) bool { return n.told || n.daemon }))
}

// lost checks that every error was given to somebody who is around its node, but for
// those of which a list that is too long gives only the number.
//
// The list that has left an error out is known: that of the nearest node around it of
// which somebody was given a list that is too long. If a list finds no place in
// another, it counts there as one.
func (r *treeRun) lost() {
	missing := map[*treeNode][]*treeNode{}
	for _, n := range r.nodes {
		if !n.mustBeTold() || r.wasGiven(n) {
			continue
		}
		at := n
		for at != nil && r.leftOut(at) == 0 {
			at = at.parent
		}
		missing[at] = append(missing[at], n)
	}
	for at, nodes := range missing {
		if count, limit := r.leastLeftOut(at, at, nodes), r.leftOut(at); count > limit {
			r.fault("errors of nodes %v were lost: lists have left out %d, and these are at least %d", ids(nodes), limit, count)
		}
	}
}

func ids(nodes []*treeNode) (all []int) {
	for _, n := range nodes {
		all = append(all, n.id)
	}
	return all
}

// wasGiven reports whether somebody was given the error of n.
func (r *treeRun) wasGiven(n *treeNode) bool {
	return slices.ContainsFunc(r.sinks, func(s treeSink) bool { return errors.Is(everythingIn(s.err), n.err) })
}

// wasGivenAs reports whether somebody was given the error of n in the outcome of at.
func (r *treeRun) wasGivenAs(at, n *treeNode) bool {
	return slices.ContainsFunc(r.sinks, func(s treeSink) bool {
		return s.n == at && errors.Is(everythingIn(s.err), n.err)
	})
}

// leastLeftOut returns how many errors of n a list of at must have left out at least for
// missing to be missing: all that is below one node may have been one list, if that list
// has nothing of it.
func (r *treeRun) leastLeftOut(at, n *treeNode, missing []*treeNode) (least int) {
	if slices.Contains(missing, n) {
		least++
	}
	for _, child := range r.nodes {
		if child.parent != n {
			continue
		}
		below := func(m *treeNode) bool { return m.is(func(n *treeNode) bool { return n == child }) }
		kept := slices.ContainsFunc(r.nodes, func(m *treeNode) bool {
			return below(m) && m.mustBeTold() && r.wasGivenAs(at, m)
		})
		switch {
		case !slices.ContainsFunc(missing, below):
		case kept:
			least += r.leastLeftOut(at, child, missing)
		default:
			least++
		}
	}
	return least
}

// leftOut returns how many errors the lists have left out that were given as the
// outcome of n.
func (r *treeRun) leftOut(n *treeNode) (most int) {
	for _, s := range r.sinks {
		if s.n == n {
			most = max(most, leftOut(s.err, map[error]bool{}))
		}
	}
	return most
}

// moreBeside is the line of a panic that says how many errors Also has left out.
var moreBeside = regexp.MustCompile(`(?m)^\tand (\d+) more$`)

// leftOut returns how many errors the lists in err have left out.
func leftOut(err error, seen map[error]bool) (count int) {
	var inside []error
	switch e := err.(type) {
	case *async.ScopeError:
		if seen[e] {
			return 0
		}
		seen[e] = true
		count, inside = e.Dropped, e.Unwrap()
	case *async.PanicError:
		if seen[e] {
			return 0
		}
		seen[e] = true
		if more := moreBeside.FindStringSubmatch(fmt.Sprintf("%+v", e)); more != nil {
			count, _ = strconv.Atoi(more[1])
		}
		inside = append(append(inside, e.Also...), e.Unwrap())
	case interface{ Unwrap() error }:
		inside = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		inside = e.Unwrap()
	}
	for _, err := range inside {
		count += leftOut(err, seen)
	}
	return count
}

// treeNode is the bookkeeping for one handler, body or hook: deliberately dumb.
type treeNode struct {
	what    []string // what it is, and its options
	id      int
	parent  *treeNode
	started bool
	ended   bool
	hooks   int   // abort hooks that ran
	hooking bool  // one is running
	err     error // the unique error it failed or panicked with
	loud    bool  // by panic
	told    bool  // its owner was told a timeout or has cancelled it
	again   bool  // it is started again when it fails
	runs    int   // of its handler
	daemon  bool  // what it returns as it is told to stop is no failure
	loser   bool  // it contends: if it loses nobody is told of its error
	stray   bool  // its scope has returned without what it has started

	detaches bool // its scope may do so

	hooked    bool // it has a discard hook, and the values of its runs are counted
	values    int  // which its handler has returned
	discarded int  // of these
	kept      bool // somebody was given one
}

// A treeSink is an error that user code was given as the outcome of node n, nil for
// the root.
type treeSink struct {
	n   *treeNode
	err error
}

// treeRun is one run of one tree.
type treeRun struct {
	data  []byte
	mu    sync.Mutex // guards what follows
	pos   int
	nodes []*treeNode
	sinks []treeSink // every error that user code was given
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

func (r *treeRun) node(parent *treeNode, what string) *treeNode {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := &treeNode{id: len(r.nodes), parent: parent, what: []string{what}}
	r.nodes = append(r.nodes, n)
	return n
}

func (r *treeRun) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// note adds what is to be printed of n.
func (r *treeRun) note(n *treeNode, format string, args ...any) {
	r.set(func() { n.what = append(n.what, fmt.Sprintf(format, args...)) })
}

// String shows the tree.
func (r *treeRun) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	var below func(parent *treeNode, indent string)
	below = func(parent *treeNode, indent string) {
		for _, n := range r.nodes {
			if n.parent == parent {
				fmt.Fprintf(&b, "%s%d: %s; %d runs, err %v, loud %v, told %v\n", indent, n.id, strings.Join(n.what, " "), n.runs, n.err, n.loud, n.told)
				below(n, indent+"  ")
			}
		}
	}
	below(nil, "")
	for _, s := range r.sinks {
		of := "the root"
		if s.n != nil {
			of = fmt.Sprint("node ", s.n.id)
		}
		fmt.Fprintf(&b, "given of %s: %T %.300q\n", of, s.err, s.err)
	}
	return b.String()
}

// given books an error that user code was given as the outcome of n.
func (r *treeRun) given(n *treeNode, err error) {
	if err != nil {
		r.set(func() { r.sinks = append(r.sinks, treeSink{n, err}) })
	}
}

// is reports whether n, or a node around it, is as f says.
func (n *treeNode) is(f func(*treeNode) bool) bool {
	for ; n != nil; n = n.parent {
		if f(n) {
			return true
		}
	}
	return false
}

// under reports whether n is below top, and not left behind by a scope in between.
func (n *treeNode) under(top *treeNode) bool {
	for n = n.parent; n != nil && !n.stray; n = n.parent {
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

// begins books that a run of n's handler begins. Nothing of the run before it may
// go on.
func (r *treeRun) begins(n *treeNode) {
	if n.again {
		r.closed(n)
	}
	r.set(func() {
		if n.started && !n.ended {
			r.wrong = append(r.wrong, fmt.Sprintf("node %d: two runs at a time", n.id))
		}
		n.started, n.ended, n.err = true, false, nil
		n.runs++
	})
}

func (r *treeRun) goTask(ctx context.Context, parent *treeNode, depth int) {
	n := r.node(parent, "Go")
	async.Go(ctx, func(ctx context.Context) error {
		_, err := r.handler(ctx, n, depth)
		return err
	}, r.options(n)...)
}

func (r *treeRun) execute(ctx context.Context, parent *treeNode, depth int) (*async.Future[int], *treeNode) {
	n := r.node(parent, "Execute")
	opts := r.options(n)
	if r.next(4) == 0 {
		opts = append(opts, r.discards(n))
	}
	return async.Execute(ctx, func(ctx context.Context) (int, error) { return r.handler(ctx, n, depth) }, opts...), n
}

func (r *treeRun) await(ctx context.Context, f *async.Future[int], n *treeNode) {
	limit := time.Duration(r.next(4)) * 7 * time.Millisecond
	begin := time.Now()
	v, err := f.Await(ctx, limit)
	if late := time.Since(begin) - limit; limit > 0 && late > 25*time.Millisecond {
		r.fault("await of node %d came back %v late", n.id, late)
	}
	// It may have settled since it was told; Result would be given the outcome.
	if f.State() != async.StateDone || ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		r.set(func() { n.told = true })
	}
	r.got(n, v, err)
}

// got books what a wait for n was given.
func (r *treeRun) got(n *treeNode, v int, err error) {
	r.given(n, err)
	switch {
	case err != nil:
	case v != n.id+1:
		r.fault("node %d has the value %d", n.id, v)
	default:
		r.set(func() { n.kept = true })
	}
}
