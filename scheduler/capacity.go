package scheduler

import "slices"

// A capacity is how many tasks of a worker may be pending, and the calls that wait for
// room. It is plain data: the caller of a method holds the worker's lock.
type capacity struct {
	most    int // 0: there is no limit
	full    Full
	blocked []*blockedCall // first come, first served
}

// A blockedCall is one that waits for room.
type blockedCall struct {
	n      *node
	answer chan error // has room for the one answer it gets, under the worker's mu
}

// isFull reports whether one more task would be more than the capacity, or would
// overtake a call that waits for room. There is a limit.
func (c *capacity) isFull(pending int) bool { return len(c.blocked) > 0 || pending >= c.most }

// wait returns a call that waits for room for n.
func (c *capacity) wait(n *node) *blockedCall {
	call := &blockedCall{n, make(chan error, 1)}
	c.blocked = append(c.blocked, call)
	return call
}

// next takes the call that has waited longest, if there is room for it; else it returns nil.
func (c *capacity) next(pending int) *blockedCall {
	if len(c.blocked) == 0 || pending >= c.most {
		return nil
	}
	call := c.blocked[0]
	c.blocked[0] = nil
	if c.blocked = c.blocked[1:]; len(c.blocked) == 0 {
		c.blocked = nil
	}
	return call
}

// withdraw answers the call that waits for room for n, if there is one.
func (c *capacity) withdraw(n *node, answer error) {
	i := slices.IndexFunc(c.blocked, func(call *blockedCall) bool { return call.n == n })
	if i >= 0 {
		c.blocked[i].answer <- answer
		c.blocked = slices.Delete(c.blocked, i, i+1)
	}
}

// refuse tells the calls that there will be no room. A future is told the cause.
func (c *capacity) refuse(cause error) {
	for _, call := range c.blocked {
		if call.n.future != nil {
			call.answer <- cause
		} else {
			call.answer <- ErrClosed
		}
	}
	c.blocked = nil
}
