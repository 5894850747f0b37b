package async_test

import (
	"fmt"
	"strings"
	"sync"
)

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
