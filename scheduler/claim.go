package scheduler

import "container/heap"

// This file is how what is pending in a queue is taken out of it.
//
// A node's state is moved from pending by one compare-and-swap, called a claim.
// One of several goroutines makes the claim, and that one decides the outcome: the
// drain, which claims for running without the lock, or a canceller here, which
// holds the lock. A post has no state. Until it is in the batch the lock decides;
// in the batch the index of the entry does, see start.

// The index of an entry in the batch is decided by two atomics, next and cut, each
// of which one side stores and the other loads: see start and dropQueued.
//
// Every drop function takes f, which is told of each node that was dropped, nil for
// a post. f is called with the worker's lock held, so it calls no users' code.

// unlink takes n, which was claimed, off whatever it is on. In the batch it stays
// until that ends: the drain passes by there without the lock, and sees from
// its state that n is not to be run.
func (q *queue) unlink(n *node) {
	switch {
	case n.on == onHeap:
		heap.Remove(&q.heap, n.index)
	case n.on == onList && (n.chunk != q.head || n.index >= q.end): // not in the batch
		// An entry is not moved for this: gone stands in its place until the gaps are
		// closed, all at once.
		n.chunk.entries[n.index] = entry{n: gone}
		q.length--
		q.gaps++
		if n.chunk == q.tail && n.index == q.to-1 && n.index > 0 {
			q.to-- // most often what was scheduled last is cancelled first
			q.gaps--
		}
		q.compactIfSparse()
	default:
		return
	}
	q.count(n)
}

// compactIfSparse closes the gaps if there are more of them than tasks, and more
// than one chunk of them. So a gap is closed once for each task that is moved,
// and cancelling costs constant time on average, however many are queued.
func (q *queue) compactIfSparse() {
	if q.gaps > q.length+chunkSize {
		q.compact()
	}
}

// compact closes the gaps that cancelled entries have left, so that they take
// no more room than those that are pending. The batch stays where it is: the
// drain reads it without the lock. Entries move towards the front only, so a
// single pass does not overwrite what it has not read.
func (q *queue) compact() {
	to, at := q.head, max(q.from, q.end) // where the next entry is moved to
	from := at
	for c := q.head; c != nil; c = c.next {
		for i := from; i < q.limitOf(c); i++ {
			e := c.entries[i]
			c.entries[i] = entry{}
			if e.n == gone {
				continue
			}
			if at == chunkSize {
				to, at = to.next, 0
			}
			to.entries[at] = e
			if e.n != nil {
				to.nodes = true
				e.n.chunk, e.n.index = to, at
			}
			at++
		}
		from = 0
	}
	to.next, q.tail, q.to, q.gaps = nil, to, at, 0
	q.advance()
}

// dropQueued moves everything that is queued to an outcome, calls f for each
// (with nil for a post) and returns how many there were. The entries of the
// batch that have been started are left alone, and all behind them are not: so
// what runs or has run is a prefix of what was queued.
func (q *queue) dropQueued(to State, f func(*node)) (count int) {
	if q.end > 0 && !q.cut.Load() {
		// The drain stores next and then loads cut; we store cut and then load
		// next. If it does not see the cut, we see the entry that it starts.
		q.cut.Store(true)
		q.limit = int(q.next.Load())
		for i := q.limit; i < q.end; i++ {
			count += q.dropEntry(q.head, i, to, f)
		}
	}
	from := max(q.from, q.end)
	for c := q.head; c != nil; c = c.next {
		for i := from; i < q.limitOf(c); i++ {
			count += q.dropEntry(c, i, to, f)
		}
		from = 0
	}
	// A batch stays until the drain ends it, with what it has started; endBatch counts
	// that. Without one the list is as new.
	q.length, q.gaps = 0, 0
	if q.end == 0 {
		q.clear()
	} else {
		q.head.next, q.tail, q.to = nil, q.head, q.end // the batch is all there is
	}
	return count
}

// dropEntry moves entry i of c to an outcome and returns 1, or 0 if it has one. The
// caller counts q.length down: for an entry of the batch that was done before.
func (q *queue) dropEntry(c *chunk, i int, to State, f func(*node)) int {
	e := &c.entries[i]
	switch n := e.n; {
	case n == gone:
		return 0
	case n == nil:
		q.ended[to]++
		f(nil)
	case n.claim(to):
		q.count(n)
		f(n)
	default: // cancelled alone, in the batch: counted when that ends
		return 0
	}
	// The drain does not read this entry any more: it is behind the cut, or not in
	// the batch.
	*e = entry{n: gone}
	c.nodes = true
	return 1
}

// dropPeriodic does the same to what is queued and periodic, and only that. Tasks of the batch, too:
// there the claim decides between us and the drain.
func (q *queue) dropPeriodic(to State, f func(*node)) {
	from := q.from
	for c := q.head; c != nil; c = c.next {
		for i := from; c.nodes && i < q.limitOf(c); i++ { // posts are not periodic
			n := c.entries[i].n
			if n == nil || n.period == nil || !n.claim(to) {
				continue
			}
			f(n)
			// In the batch the entry belongs to the drain until that ends: only the
			// state of n says that it does not run, and it is counted then.
			if c != q.head || i >= q.end {
				c.entries[i] = entry{n: gone}
				q.length--
				q.gaps++
				q.count(n)
			}
		}
		from = 0
	}
	q.compactIfSparse()
}

// dropDelayed does the same to what is not due yet, in no order. A task on the heap is
// pending as long as the lock is held, so every claim succeeds.
func (q *queue) dropDelayed(to State, f func(*node)) int {
	all := q.heap
	q.heap = nil
	for _, n := range all {
		n.claim(to)
		f(n)
		q.count(n)
	}
	return len(all)
}

// dropOldest makes room for one task. It does the same to the one that would start
// next, the batch left out; if nothing is queued, to the one that is due first.
// Chunks that have nothing left are taken out, so that it does not come by them
// again.
func (q *queue) dropOldest(to State, f func(*node)) {
	from := max(q.from, q.end)
	for c, before := q.head, (*chunk)(nil); c != nil && q.length > 0; c = c.next {
		for i := from; i < q.limitOf(c); i++ {
			if q.dropEntry(c, i, to, f) == 1 {
				q.length--
				q.gaps++
				q.compactIfSparse()
				return
			}
		}
		if from = 0; before == nil {
			before = c // the first may have the batch
		} else {
			before.next = c.next
			q.gaps -= chunkSize
		}
	}
	if len(q.heap) > 0 { // nothing was queued
		n := heap.Pop(&q.heap).(*node)
		n.claim(to)
		f(n)
		q.count(n)
	}
}

// stopTick has the periodic task that runs, or is about to, not run again.
// The rest of the batch that is pending was claimed before.
func (q *queue) stopTick() {
	for i := q.from; i < q.end; i++ {
		if n := q.head.entries[i].n; n != nil && n.period != nil && n.status() <= Running {
			n.period.stopped = true
		}
	}
}
