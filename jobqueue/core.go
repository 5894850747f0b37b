package jobqueue

import "time"

// This file is the queue as plain data: no lock, no goroutine, no clock. Whoever
// calls it holds the lock and says what time it is.

// A state is where a job stands. docs/jobqueue.md has a picture.
type state uint8

const (
	// delayed: known, but not to be taken before its time. It leaves by the
	// clock (ripen) or is removed.
	delayed state = iota
	// ready: may be taken. It leaves to whoever takes it or is removed.
	ready
	// taken: a holder has it. It leaves when that settles it: done, back to its
	// place, delayed, or dead.
	taken
)

// A node is a job that the queue knows: the only one of its key.
type node[K comparable, T any] struct {
	key    K
	job    T
	rank   int64  // its Priority, negated: less is more urgent
	seq    uint64 // its place; that of its first becoming ready, kept until it ends
	state  state
	runs   int // how often it was taken
	failed int // how many of its runs failed

	since  time.Duration // when it became ready, or was taken
	waited time.Duration // taken: how long it had been ready
	at     time.Duration // delayed: when it becomes ready
	index  int           // in the heap it is in
	listed bool          // it is in the run of the ready ones, not in their heap
	prev   *node[K, T]   // in the list it is in
	next   *node[K, T]
	holder *holder[K, T] // who has taken it

	// unheard is whose call of Take has not returned with the job yet. Until it
	// has, nobody can have worked on it, so the end of the scope puts it back.
	unheard *waiter[K, T]

	again *rerun[T] // the run that was asked for while it was in progress
}

// A rerun is a job that was added while one of its key was in progress.
type rerun[T any] struct {
	job  T
	rank int64
	at   time.Duration // not before
}

// A core is a set of jobs and who waits for them. Between calls one of ready and
// waiters is empty: jobs that are there are given to whoever waits.
type core[K comparable, T any] struct {
	nodes   map[K]*node[K, T]
	most    int // jobs in nodes since it was made; a map does not shrink
	ready   readySet[K, T]
	delayed heap[*node[K, T]] // by time
	waiters waiters[K, T]
	free    *node[K, T] // nodes to be used again, a chain
	spare   int         // how many
	taken   int
	seq     uint64
	closed  bool // nothing is added or taken any more
	refuse  bool // nothing is added any more
	stats   Stats
	rules
}

// rules are the options that the core keeps to.
type rules struct {
	again    bool // WhileRunning(RunAgain)
	capacity int  // 0: none
	attempts int  // failed runs that bury a job; 0: any number
}

func (c *core[K, T]) init(r rules) {
	c.rules = r
	c.nodes = make(map[K]*node[K, T])
	c.ready.heap.less = before[K, T]
	c.delayed.less = sooner[K, T]
}

// refuses returns why a job with the given key is not accepted: ErrDuplicate,
// ErrFull or ErrClosed; nil if it is.
func (c *core[K, T]) refuses(key K) error {
	if c.refuse {
		c.stats.Refused++
		return ErrClosed
	}
	if old := c.nodes[key]; old != nil {
		if c.again && (old.state == taken || old.again != nil) {
			return nil
		}
		c.stats.Duplicates++
		return ErrDuplicate
	}
	if c.capacity > 0 && c.queued() >= c.capacity {
		c.stats.Refused++
		return ErrFull
	}
	return nil
}

// add makes a job that is not refused known, ready at the time at.
func (c *core[K, T]) add(key K, job T, rank int64, at, now time.Duration) {
	if old := c.nodes[key]; old != nil {
		c.rerun(old, rerun[T]{job, rank, at})
		return
	}
	c.stats.Added++
	c.know(key, job, rank, at, now)
}

// know makes a new node for a job and queues it.
func (c *core[K, T]) know(key K, job T, rank int64, at, now time.Duration) {
	n := c.free
	if n != nil {
		c.free, n.next = n.next, nil
		c.spare--
	} else {
		n = new(node[K, T])
	}
	n.key, n.job, n.rank = key, job, rank
	c.nodes[key] = n
	c.most = max(c.most, len(c.nodes))
	c.enter(n, at, now)
}

// rerun notes that n is to run once more when it has ended: with the newest job
// of its key, at the earliest time anybody has asked for.
func (c *core[K, T]) rerun(n *node[K, T], r rerun[T]) {
	if n.again == nil {
		c.stats.Added++
	} else {
		r.at = min(r.at, n.again.at)
	}
	n.again = &r
}

// enter queues n, which is in no state, for the first time or once more.
func (c *core[K, T]) enter(n *node[K, T], at, now time.Duration) {
	if n.seq == 0 {
		c.seq++
		n.seq = c.seq
	}
	if at > now {
		n.state, n.at = delayed, at
		c.delayed.push(n)
		return
	}
	n.state, n.since = ready, now
	c.ready.push(n)
}

// ripen readies the delayed jobs whose time has come, in the order of their
// times. One that never ran comes to the end; others have a place.
func (c *core[K, T]) ripen(now time.Duration) {
	for n := c.delayed.min(); n != nil && n.at <= now; n = c.delayed.min() {
		c.delayed.remove(n)
		if n.runs == 0 {
			n.seq = 0
		}
		c.enter(n, now, now)
	}
}

// take has h take the first job that is ready. There must be one.
func (c *core[K, T]) take(h *holder[K, T], now time.Duration) *node[K, T] {
	n := c.ready.pop()
	n.waited = now - n.since
	c.stats.QueuedTime += n.waited
	c.stats.Taken++
	n.state, n.since, n.holder = taken, now, h
	n.runs++
	c.taken++
	h.jobs.push(n)
	return n
}

// let takes n off its holder.
func (c *core[K, T]) let(n *node[K, T], now time.Duration) {
	n.holder.jobs.remove(n)
	n.holder, n.unheard = nil, nil
	c.taken--
	c.stats.InProgressTime += now - n.since
}

// done ends n: it is forgotten, or runs again if that was asked for.
func (c *core[K, T]) done(n *node[K, T], now time.Duration) {
	c.let(n, now)
	c.stats.Done++
	c.end(n, now)
}

// buries reports whether one more failure is the end of n.
func (c *core[K, T]) buries(n *node[K, T]) bool {
	return c.attempts > 0 && n.failed+1 >= c.attempts
}

// fail ends a run of n that has failed. n goes back to its place, not before
// the time at; or it is dead, and fail says so.
func (c *core[K, T]) fail(n *node[K, T], at, now time.Duration) (dead bool) {
	dead = c.buries(n)
	c.let(n, now)
	c.stats.Failed++
	n.failed++
	if dead {
		c.stats.Dead++
		c.end(n, now)
		return true
	}
	c.stats.Returned++
	if c.closed {
		at = now // nobody waits for it any more
	}
	c.enter(n, at, now)
	return false
}

// release puts n back to its place: its run was told to stop, which is nobody's
// failure.
func (c *core[K, T]) release(n *node[K, T], now time.Duration) {
	c.let(n, now)
	c.stats.Returned++
	c.enter(n, now, now)
}

// end forgets n, which is in no state, or makes its rerun a new job of its key.
func (c *core[K, T]) end(n *node[K, T], now time.Duration) {
	key, r := n.key, n.again
	c.forget(n)
	if r != nil {
		c.know(key, r.job, r.rank, r.at, now)
	}
}

// forget removes n from what is known.
func (c *core[K, T]) forget(n *node[K, T]) {
	delete(c.nodes, n.key)
	if len(c.nodes) == 0 && c.most > 1024 {
		c.nodes, c.most = make(map[K]*node[K, T]), 0 // the old one keeps its size
	}
	if *n = (node[K, T]{}); c.spare < maxSpare {
		c.free, n.next = n, c.free
		c.spare++
	}
}

// maxSpare is how many nodes are kept to be used again. Measured, making them
// anew is a fifth of what adding, taking and settling a job costs.
const maxSpare = 64

// remove forgets what is to run of key: the job if it is not in progress, or
// the rerun. It returns the job, and false if there was none.
func (c *core[K, T]) remove(key K) (job T, ok bool) {
	n := c.nodes[key]
	switch {
	case n == nil || n.state == taken && n.again == nil:
		return job, false
	case n.state == taken:
		job, n.again = n.again.job, nil
		c.stats.Removed++
		return job, true
	case n.state == ready:
		c.ready.remove(n)
	default:
		c.delayed.remove(n)
	}
	c.stats.Removed++
	if n.again != nil {
		c.stats.Removed++
	}
	job = n.job
	c.forget(n)
	return job, true
}

// queued returns how many jobs are not in progress.
func (c *core[K, T]) queued() int { return c.ready.len() + c.delayed.len() }

// idle reports whether nothing is left to be waited for by Drain.
func (c *core[K, T]) idle() bool { return c.taken == 0 && (c.closed || c.ready.len() == 0) }
