package jobqueue

import "time"

// This file is the queue as plain data: no lock, no goroutine, no clock. The
// caller holds the lock and says what time it is.

// A state is where a job stands. docs/jobqueue.md has a picture.
type state uint8

const (
	// delayed: the queue knows the job, but its time has not come. It leaves
	// this state by the clock (makeDueReady), or it is removed.
	delayed state = iota
	// ready: the job may be taken. It leaves this state when it is taken or
	// removed.
	ready
	// taken: a holder has the job. It leaves this state when the holder settles
	// it: done, back to its place, delayed for a retry, or dead.
	taken
)

// A node is a job that the queue knows. There is one for each key.
type node[K comparable, T any] struct {
	key      K
	job      T
	priority int    // what the Priority option says of job; the greater is taken first
	seq      uint64 // the place: given when the job is queued, kept through every retry
	state    state
	runs     int // how often it was taken
	failed   int // how many of its runs failed

	since  time.Duration // ready, taken: when it came into this state
	waited time.Duration // taken: how long it had been ready
	at     time.Duration // delayed: when it becomes ready
	index  int           // where it is in its heap
	inRun  bool          // ready: it is in the run of the ready set, not in the heap
	prev   *node[K, T]   // in its list
	next   *node[K, T]
	holder *holder[K, T] // not nil exactly while taken

	// undelivered is the call of Take that was handed the job and has not returned
	// yet; nil in every state but taken. While it is set the job cannot have been
	// worked on, so the end of the scope puts the job back and does not count the run.
	undelivered *waiter[K, T]

	// again is the newer job that was added while this one was in progress. It
	// is nil in every state but taken: when the run ends, again is queued as a
	// job of its own, or the retry takes it.
	again *rerun[T]
}

// A rerun is a job that was added while one of its key was in progress.
type rerun[T any] struct {
	job      T
	priority int
	at       time.Duration // not to be taken before
}

// A core is a set of jobs, and the calls of Take that wait for jobs. Between two
// calls of its methods by a Queue there are no ready jobs, or no waiters: what
// is ready has been handed to the waiters.
type core[K comparable, T any] struct {
	// nodes has every job that the queue knows, by key. Each is also in one of the
	// sets that belong to its state: ready, delayed, or the list of its holder.
	nodes   table[K, *node[K, T]]
	ready   readySet[K, T]
	delayed heap[*node[K, T]] // by time
	// retries is how many of delayed wait for a retry; the others wait for their
	// first run. It is counted apart because Drain waits for retries only.
	retries int
	taken   int // how many nodes are taken
	waiters waiters[K, T]
	seq     uint64 // the place that was given last
	stats   Stats
	rules

	// noAdds: nothing is added any more. It is set by Drain and Close, for good.
	noAdds bool
	// closed: nothing is taken any more, and nothing becomes ready by the clock.
	// It is set by Close and by the end of a Drain, for good; noAdds holds then.
	closed bool

	// free has nodes that nobody refers to and that are to be used again, chained by
	// next. spare is how many there are.
	free  *node[K, T]
	spare int
}

// rules are the options that the core keeps to.
type rules struct {
	again    bool // WhileRunning(RunAgain)
	capacity int  // 0 for none
	attempts int  // after so many failed runs a job is dead; 0 for any number
}

func (c *core[K, T]) init(r rules) {
	c.rules = r
	c.nodes.init()
	c.ready.heap.less = before[K, T]
	c.delayed.less = sooner[K, T]
}

// refuses returns why a job with the given key is not accepted: ErrDuplicate,
// ErrFull or ErrClosed. It returns nil if the job is accepted. It changes only the
// counts: the caller calls add in the same turn.
func (c *core[K, T]) refuses(key K) error {
	if c.noAdds {
		c.stats.Refused++
		return ErrClosed
	}
	if old := c.nodes.get(key); old != nil {
		if c.again && old.state == taken {
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

// add adds a job that refuses has accepted. It is ready at the time at.
func (c *core[K, T]) add(key K, job T, priority int, at, now time.Duration) {
	if old := c.nodes.get(key); old != nil {
		c.addRerun(old, rerun[T]{job, priority, at})
		return
	}
	c.stats.Added++
	c.addNode(key, job, priority, at, now)
}

// addNode makes a node for a job and queues it. The key must be new.
func (c *core[K, T]) addNode(key K, job T, priority int, at, now time.Duration) {
	n := c.newNode()
	n.key, n.job, n.priority = key, job, priority
	c.nodes.put(key, n)
	c.enqueue(n, at, now)
}

// addRerun notes that n, which is taken, is to run once more. If there are several calls
// the newest job counts, and the earliest time.
func (c *core[K, T]) addRerun(n *node[K, T], r rerun[T]) {
	if n.again == nil {
		c.stats.Added++
	} else {
		r.at = min(r.at, n.again.at)
	}
	n.again = &r
}

// enqueue makes n delayed or ready. n is new, or has just left another state.
// A node that has a place keeps it: so a job that goes back is taken before jobs
// that were added later.
func (c *core[K, T]) enqueue(n *node[K, T], at, now time.Duration) {
	if n.seq == 0 {
		c.seq++
		n.seq = c.seq
	}
	if at > now {
		n.state, n.at = delayed, at
		c.delayed.push(n)
		if n.isRetry() {
			c.retries++
		}
		return
	}
	n.state, n.since = ready, now
	c.ready.push(n)
}

// isRetry reports whether n, which is delayed, has run before. If not, it waits
// for the time that AddAfter was given.
func (n *node[K, T]) isRetry() bool { return n.runs > 0 }

// leaveDelayed takes n out of the delayed jobs.
func (c *core[K, T]) leaveDelayed(n *node[K, T]) {
	c.delayed.remove(n)
	if n.isRetry() {
		c.retries--
	}
}

// makeDueReady makes the delayed jobs ready whose time has come, in the order of
// their times. A retry goes to its place, the others go to the end.
func (c *core[K, T]) makeDueReady(now time.Duration) {
	for n := c.delayed.min(); n != nil && n.at <= now; n = c.delayed.min() {
		c.leaveDelayed(n)
		if !n.isRetry() {
			n.seq = 0
		}
		c.enqueue(n, now, now)
	}
}

// take has h take the first ready job. There must be one.
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

// remove removes what is still to run of key: the job if it is not in progress,
// otherwise its rerun. A job in progress is its holder's, and stays. remove returns the
// job, and false if there was none.
func (c *core[K, T]) remove(key K) (job T, ok bool) {
	n := c.nodes.get(key)
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
		c.leaveDelayed(n)
	}
	c.stats.Removed++
	job = n.job
	c.forget(n)
	return job, true
}

// queued returns how many jobs are not in progress.
func (c *core[K, T]) queued() int { return c.ready.len() + c.delayed.len() }

// waiting returns how many jobs may be taken or will be retried: Drain waits for these
// beside the jobs in progress.
func (c *core[K, T]) waiting() int { return c.ready.len() + c.retries }

// drained reports whether Drain has nothing to wait for. Nothing is taken
// from a closed queue, so there only the jobs in progress count.
func (c *core[K, T]) drained() bool { return c.taken == 0 && (c.closed || c.waiting() == 0) }
