package scheduler

import (
	"container/heap"
	"time"
)

// A queue is what a worker has to do: a list of what is ready, and a heap of
// what is not due yet. It is plain data: the caller of a method holds the lock of
// the worker, but for start, and there is no goroutine and no clock in it.
//
// The list is made of chunks. A drain takes the first entries of the first
// chunk as its batch and runs them without the lock; what it does not come to
// is still in its place. Measured, this takes a third of the time of a list
// of nodes that are used again.
//
//	head                        tail
//	[ . . b b b b x x ] -> ... -> [ x x x . . . ]
//	      from  end                     to
//
// b is the batch, x is pending, and what is before from has ended.
type queue struct {
	owner      owner
	head, tail *chunk
	from       int    // the first entry of head whose batch has not ended
	to         int    // the first free entry of tail
	length     int    // entries that are pending, the batch left out
	gaps       int    // entries that are gone, the batch left out
	spare      *chunk // an empty one to be used next; nil: there is none
	heap       deadlines
	seq        uint64 // how many tasks were accepted
	// ended counts outcomes, those of the batch left out. Each task that was
	// accepted is pending, in the batch, running, or counted here once.
	ended [Exited + 1]uint64

	// The batch is head's entries from from to end; end is 0 if there is none.
	// While there is one, from, end and the entries are not moved.
	end int

	// next is the entry of the batch that starts next: all before it were started. The
	// drain stores it without the lock, before it looks at cut.
	next atomicInt32
	// cut: the entries of the batch from limit on were cancelled. It is stored
	// under the lock, before next is looked at.
	cut   atomicBool
	limit int // only if cut
}

// An owner is the worker of a queue, as the handles of tasks see it.
type owner interface {
	cancel(n *node, cause error) bool
}

const chunkSize = 64

// A chunk is a piece of the list. A queue has one from its first task on, and
// perhaps one to spare; more only while that much is queued. Entries that hold
// nothing are zero, but for posts that have run: those are overwritten, or cleared
// with the chunk.
type chunk struct {
	entries [chunkSize]entry
	next    *chunk
	nodes   bool // not all of the entries are posts that ran, run or will
}

// An entry is a function that nobody has a handle to, or a node.
type entry struct {
	post func()
	n    *node // nil: post; gone: it has ended already
}

// gone stands in entries whose task has ended and was counted.
var gone = new(node)

// accept counts a task: from here on it has one outcome.
func (q *queue) accept() uint64 {
	q.seq++
	return q.seq
}

// push puts e at the end of the list. It may write to the chunk that has the batch,
// but behind the batch, where the drain does not look.
func (q *queue) push(e entry) {
	q.makeRoom()
	q.tail.entries[q.to] = e
	if e.n != nil {
		e.n.on, e.n.chunk, e.n.index = onList, q.tail, q.to
		q.tail.nodes = true
	}
	q.to++
	q.length++
}

// pushPost accepts f and pushes it. Unlike push it is short enough for the compiler
// to put it in the place of the call: measured, a post is a tenth cheaper.
func (q *queue) pushPost(f func()) {
	q.makeRoom()
	q.tail.entries[q.to] = entry{post: f}
	q.to++
	q.length++
	q.seq++
}

// makeRoom adds a chunk if tail has no free entry.
func (q *queue) makeRoom() {
	switch {
	case q.tail == nil:
		q.head = new(chunk)
		q.tail = q.head
	case q.to == chunkSize:
		c := q.spare
		if q.spare = nil; c == nil {
			c = new(chunk)
		}
		q.tail.next = c
		q.tail, q.to = c, 0
	}
}

// limitOf returns the end of c's entries.
func (q *queue) limitOf(c *chunk) int {
	if c == q.tail {
		return q.to
	}
	return chunkSize
}

// takeBatch makes the first entries, at most n, the batch, and returns where
// they are. Without any it returns nil. There is no batch before.
func (q *queue) takeBatch(n int) (c *chunk, from, end int) {
	if q.length == 0 {
		q.clear()
		return nil, 0, 0
	}
	// A batch begins with a task, so that it is never empty. There is one behind the
	// gaps: length is not 0.
	for q.head.entries[q.from].n == gone {
		q.from++
		q.gaps--
		q.advance()
	}
	q.end = min(q.from+n, q.limitOf(q.head))
	// In a chunk that holds only posts none is gone, so they need not be looked at one
	// by one: measured, eight producers wait for the lock half as long.
	if !q.head.nodes {
		q.length -= q.end - q.from
	} else {
		for i := q.from; i < q.end; i++ {
			if q.head.entries[i].n == gone {
				q.gaps--
			} else {
				q.length--
			}
		}
	}
	// Under the lock, before the drain starts anything: a canceller sees both or none.
	q.next.Store(int32(q.from))
	q.cut.Store(false)
	return q.head, q.from, q.end
}

// start claims entry i of the batch for the drain, without the lock. It
// reports false if some of the batch were cancelled: the drain has to look at
// limit under the lock. Each of start and dropQueued stores before it loads
// what the other stores, so one of them sees the other.
func (q *queue) start(i int) bool {
	q.next.Store(int32(i + 1))
	return !q.cut.Load()
}

// endBatch ends the batch: entries before rest have ended, with the outcome of
// their node or, without one, have run. The others are pending again.
func (q *queue) endBatch(rest int) {
	switch {
	case q.end == 0:
		return
	case !q.head.nodes && rest == q.end: // the usual case: posts, and all have run
		q.ended[Done] += uint64(rest - q.from)
		q.from, q.end = rest, 0
		q.advance()
		return
	}
	for i := q.from; i < rest; i++ {
		e := &q.head.entries[i]
		switch {
		case e.n == nil:
			q.ended[Done]++
		case e.n != gone:
			q.count(e.n)
		}
		*e = entry{}
	}
	// A node that the drain has not come to goes back where it is: nothing is moved. A node
	// that was cancelled in the batch has its outcome, and is a gap from here on.
	for i := rest; i < q.end; i++ {
		e := &q.head.entries[i]
		if e.n != nil && e.n != gone && e.n.status() != Pending {
			q.count(e.n)
			*e = entry{n: gone}
		}
		if e.n == gone {
			q.gaps++
		} else {
			q.length++
		}
	}
	q.from, q.end = rest, 0
	q.advance()
}

// count counts the outcome of n, which is on no list any more.
func (q *queue) count(n *node) {
	n.on, n.chunk = onNothing, nil
	if state := n.status(); state > Running {
		q.ended[state]++
	}
}

// advance goes on to the next chunk if the first is used up. There is no batch: the
// chunk is cleared, or kept with posts that have run, which push overwrites.
func (q *queue) advance() {
	if q.from < q.limitOf(q.head) {
		return
	}
	old := q.head
	if old == q.tail { // nothing is left: the only chunk begins anew
		if q.from, q.to = 0, 0; old.nodes {
			*old = chunk{}
		}
		return
	}
	q.head, q.from = old.next, 0
	if old.next = nil; old.nodes {
		*old = chunk{}
	}
	q.spare = old // a queue that grows and shrinks by a chunk allocates nothing
}

// clear makes the list as new. There is no batch.
func (q *queue) clear() {
	if q.head != nil {
		*q.head = chunk{}
	}
	q.tail, q.from, q.to, q.length, q.gaps = q.head, 0, 0, 0, 0
}

// delay puts n into the heap, to be due at n.at.
func (q *queue) delay(n *node) {
	n.on = onHeap
	heap.Push(&q.heap, n)
}

// queueDue moves what is due at now to the end of the list, in the order of
// deadlines, and of the calls where they are equal.
func (q *queue) queueDue(now time.Duration) {
	for len(q.heap) > 0 && q.heap[0].at <= now {
		n := heap.Pop(&q.heap).(*node)
		n.stamp = max(n.stamp, n.at)
		q.push(entry{n: n})
	}
}

// pending returns how many tasks have not started. The drain may start one while it
// counts: then the number is that of a moment ago.
func (q *queue) pending() int {
	count := q.length + len(q.heap)
	for i := int(q.next.Load()); i < q.end; i++ {
		if n := q.head.entries[i].n; n == nil || n != gone && n.status() == Pending {
			count++
		}
	}
	return count
}

// snapshot adds the outcomes of the batch to counts and returns how many tasks are
// pending and whether one runs. It may be asked while the drain runs the batch,
// which does not hold the lock.
//
// The drain goes on meanwhile, from front to back. We go from back to front and
// look at each entry once, so all are counted once and at most one as running. It is only known of
// posts that those before what was started last have run.
func (q *queue) snapshot(counts *[Exited + 1]uint64) (pending int, running bool) {
	pending = q.length + len(q.heap)
	started := int(q.next.Load())
	if q.cut.Load() {
		started = min(started, q.limit)
	}
	for i := q.end - 1; i >= q.from; i-- {
		n := q.head.entries[i].n
		state := Pending
		switch {
		case n == gone:
			continue
		case n != nil:
			if state = n.status(); state == Running || state == Done || state > Rejected {
				started = max(started, i+1)
			}
		case i < started-1:
			state = Done
		case i == started-1:
			state = Running
		}
		switch state {
		case Pending:
			pending++
		case Running:
			running = true
		default:
			counts[state]++
		}
	}
	return pending, running
}
