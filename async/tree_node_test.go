package async_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ambit-go/ambit/async"
)

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
	again   bool  // it is started again when it fails
	runs    int   // of its handler
	daemon  bool  // what it returns as it is told to stop is no failure
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

// begins books that a run of n's handler begins. Of the run before it nothing may
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

// mayBeRetried reports whether a failure of n may have been followed by another
// run, so that nobody was told of it.
func (n *treeNode) mayBeRetried() bool {
	for ; n != nil; n = n.parent {
		if n.again {
			return true
		}
	}
	return false
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
// instead, and that hooks ran at most once. Of more errors than a list holds the rest
// is only a count.
func (r *treeRun) lost() {
	given, lost := 0, []int{}
	for _, n := range r.nodes {
		if n.hooks > max(n.runs, 1) {
			r.fault("node %d: %d abort hooks", n.id, n.hooks)
		}
		if n.err == nil || n.mayBeRetried() || !n.loud && (n.daemon || n.wasTold()) {
			continue
		}
		if slices.ContainsFunc(r.sinks, func(err error) bool { return errors.Is(err, n.err) }) {
			given++
		} else {
			lost = append(lost, n.id)
		}
	}
	if len(lost) == 0 || given >= 32 && slices.ContainsFunc(r.sinks, isCut) {
		return
	}
	for _, id := range lost {
		r.fault("the error of node %d was lost", id)
	}
}

// isCut reports whether a list in err was too long.
func isCut(err error) bool {
	if list, ok := err.(*async.ScopeError); ok && list.Dropped > 0 {
		return true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return isCut(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), isCut)
	}
	return false
}
