package kvqueue

import (
	"context"
	"fmt"
)

// This file is for calls that come after one that has returned [ErrUnknown]: they wait until it is
// known what has come of that one.

// outcomes waits until it is known what has come of the calls for items that have returned [ErrUnknown].
// It returns the items that such a call has not settled as it is wanted now.
func outcomes(ctx context.Context, items []Item, same func(earlier verdict) bool) (left []Item, err error) {
	for _, i := range items {
		r := i.claim.leftBy()
		if r == nil {
			left = append(left, i)
			continue
		}
		if _, err := i.claim.session.settles.await(ctx, []*request[settlement]{r}); err != nil && !answered(r) {
			return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		if first := i.claim.known(r); r.err != nil || !first || !same(r.of.verdict) {
			left = append(left, i)
		}
	}
	return left, nil
}

func answered(r *request[settlement]) bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// leave notes a request whose call returns before it is known what comes of it.
func (c *claim) leave(r *request[settlement]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = r
}

// leftBy returns the request that was left; nil: none was.
func (c *claim) leftBy() *request[settlement] {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// known notes that a caller knows what came of a request that was left, and reports whether it is the first.
func (c *claim) known(r *request[settlement]) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first = c.left == r; first {
		c.left = nil
	}
	return first
}
