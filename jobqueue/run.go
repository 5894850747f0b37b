package jobqueue

import "time"

// This file is how the run of a job ends, as plain data. A run ends in one of
// four ways: done, failed, stopped, or dead, which is failed for the last time.

// endRun takes n from its holder and counts how long it had it. n is in no state
// then; the caller gives it one or forgets it.
func (c *core[K, T]) endRun(n *node[K, T], now time.Duration) {
	n.holder.jobs.remove(n)
	n.holder, n.undelivered = nil, nil // a Take that was handed n and has not run finds it gone
	c.taken--
	c.stats.InProgressTime += now - n.since
}

// done ends n, whose run went well.
func (c *core[K, T]) done(n *node[K, T], now time.Duration) {
	c.endRun(n, now)
	c.stats.Done++
	c.end(n, now)
}

// isLastAttempt reports whether n is dead if its run fails.
func (c *core[K, T]) isLastAttempt(n *node[K, T]) bool {
	return c.attempts > 0 && n.failed+1 >= c.attempts
}

// fail ends a run of n that has failed. n goes back to its place, where it is
// ready at the time at. If it was the last attempt n is dead instead, and fail
// reports true.
func (c *core[K, T]) fail(n *node[K, T], at, now time.Duration) (dead bool) {
	dead = c.isLastAttempt(n)
	c.endRun(n, now)
	c.stats.Failed++
	n.failed++
	if dead {
		c.stats.Dead++
		c.end(n, now)
		return true
	}
	if c.closed {
		at = now // the timer is stopped for good, so n would never be seen among the ready jobs
	}
	c.goBack(n, at, now)
	return false
}

// stop ends a run of n that was told to stop, which is nobody's failure: n goes
// back to its place and is ready at once.
func (c *core[K, T]) stop(n *node[K, T], now time.Duration) {
	c.endRun(n, now)
	c.goBack(n, now, now)
}

// goBack puts n back to its place. If a newer job of its key was added while it
// ran, n is that job from now on: the retry is the run that was asked for. Two
// runs, of the old job and then of the new one, would do the work twice.
func (c *core[K, T]) goBack(n *node[K, T], at, now time.Duration) {
	c.stats.Returned++
	if r := n.again; r != nil {
		n.job, n.priority, n.again = r.job, r.priority, nil
		c.stats.Replaced++
	}
	c.enqueue(n, at, now)
}

// end forgets n, whose last run has ended. If a newer job of its key was added
// while it ran, the newer job is queued as a job of its own.
func (c *core[K, T]) end(n *node[K, T], now time.Duration) {
	key, r := n.key, n.again // forget clears n
	c.forget(n)
	if r != nil {
		c.addNode(key, r.job, r.priority, r.at, now)
	}
}

// maxSpare is how many nodes are kept to be used again. Measured, making a node
// for each job takes a fifth of the time of adding, taking and settling it.
const maxSpare = 64

// newNode returns an empty node.
func (c *core[K, T]) newNode() *node[K, T] {
	n := c.free
	if n == nil {
		return new(node[K, T])
	}
	c.free, n.next = n.next, nil
	c.spare--
	return n
}

// forget removes n from what the queue knows. The node may be used again, so
// nothing of the job stays in it.
func (c *core[K, T]) forget(n *node[K, T]) {
	c.nodes.remove(n.key)
	if *n = (node[K, T]{}); c.spare < maxSpare {
		c.free, n.next = n, c.free
		c.spare++
	}
}
