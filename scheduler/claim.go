package scheduler

import "container/heap"

// This file is how what is pending in a queue is taken out of it.

// take takes n, which was claimed, off whatever it is on. In the batch it stays
// until that is settled.
func (q *queue) take(n *node) {
	switch {
	case n.on == onHeap:
		heap.Remove(&q.heap, n.index)
	case n.on == onList && (n.chunk != q.head || n.index >= q.end):
		n.chunk.entries[n.index] = entry{n: gone}
		q.length--
		q.gaps++
		if n.chunk == q.tail && n.index == q.to-1 && n.index > 0 {
			q.to-- // most often what was scheduled last is cancelled first
			q.gaps--
		}
		q.squeeze()
	default:
		return
	}
	q.count(n)
}

// squeeze compacts the list when most of it is gaps.
func (q *queue) squeeze() {
	if q.gaps > q.length+chunkSize {
		q.compact()
	}
}

// compact closes the gaps that cancelled entries have left, so that they take
// no more room than those that are pending. The batch stays where it is.
func (q *queue) compact() {
	to, at := q.head, max(q.from, q.end)
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

// claimReady moves everything that is queued to an outcome, calls f for each
// node among them and returns how many there were. What runs or has run is a
// prefix of what was queued.
func (q *queue) claimReady(to State, f func(*node)) (count int) {
	if q.end > 0 && !q.cut.Load() {
		q.cut.Store(true)
		q.limit = int(q.next.Load())
		for i := q.limit; i < q.end; i++ {
			count += q.claim(q.head, i, to, f)
		}
	}
	from := max(q.from, q.end)
	for c := q.head; c != nil; c = c.next {
		for i := from; i < q.limitOf(c); i++ {
			count += q.claim(c, i, to, f)
		}
		from = 0
	}
	q.length, q.gaps = 0, 0
	if q.end == 0 {
		q.clear()
	} else {
		q.head.next, q.tail, q.to = nil, q.head, q.end
	}
	return count
}

// claim moves entry i of c to an outcome and returns 1, or 0 if it has one.
func (q *queue) claim(c *chunk, i int, to State, f func(*node)) int {
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
	default: // cancelled alone, in the batch: counted when that is settled
		return 0
	}
	*e = entry{n: gone}
	c.nodes = true
	return 1
}

// claimPeriodic does the same to what is queued and periodic, and only that.
func (q *queue) claimPeriodic(to State, f func(*node)) {
	from := q.from
	for c := q.head; c != nil; c = c.next {
		for i := from; i < q.limitOf(c); i++ {
			n := c.entries[i].n
			if n == nil || n.period == nil || !n.claim(to) {
				continue
			}
			f(n)
			if c != q.head || i >= q.end { // else it is counted when the batch is settled
				c.entries[i] = entry{n: gone}
				q.length--
				q.gaps++
				q.count(n)
			}
		}
		from = 0
	}
	q.squeeze()
}

// claimDelayed does the same to what is not due yet, in no order.
func (q *queue) claimDelayed(to State, f func(*node)) int {
	all := q.heap
	q.heap = nil
	for _, n := range all {
		n.claim(to)
		f(n)
		q.count(n)
	}
	return len(all)
}

// claimOldest does the same to the one that would start next, the batch left
// out. Chunks that have nothing left are taken out, so that it does not come by
// them again.
func (q *queue) claimOldest(to State, f func(*node)) {
	from := max(q.from, q.end)
	for c, before := q.head, (*chunk)(nil); c != nil && q.length > 0; c = c.next {
		for i := from; i < q.limitOf(c); i++ {
			if q.claim(c, i, to, f) == 1 {
				q.length--
				q.gaps++
				q.squeeze()
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
	if len(q.heap) > 0 {
		n := heap.Pop(&q.heap).(*node)
		n.claim(to)
		f(n)
		q.count(n)
	}
}
