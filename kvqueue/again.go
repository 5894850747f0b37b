package kvqueue

import (
	"context"
	"fmt"
)

// This file is for calls that come after one that has returned [ErrUnknown]: they wait until it is
// known what has come of that one.

// outcomes waits until it is known what has come of the calls for items that have returned [ErrUnknown].
// It returns the items that such a call has not settled as it is wanted now, and the requests that have settled the
// others: of an item only one call is told that.
func outcomes(
	ctx context.Context, items []Item, same func(earlier verdict) bool,
) (left []Item, by []*request[settlement], err error) {
	if err := awaitLeft(ctx, items); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	settled := map[*claim]bool{}
	for _, i := range items {
		r := i.claim.leftBy()
		if r != nil && i.claim.known(r) && r.err == nil && same(r.of.verdict) {
			settled[i.claim], by = true, append(by, r)
		}
		if !settled[i.claim] {
			left = append(left, i)
		}
	}
	return left, by, nil
}

// awaitLeft waits for the answers to what was left of items, or for the end of ctx, of which it returns the error.
func awaitLeft(ctx context.Context, items []Item) error {
	for _, i := range items {
		if r := i.claim.leftBy(); r != nil {
			if open, err := i.claim.session.settles.await(ctx, []*request[settlement]{r}); open {
				return err
			}
		}
	}
	return nil
}

// leaveAll is leave for several requests.
func leaveAll(requests []*request[settlement]) {
	for _, r := range requests {
		r.of.claim.leave(r)
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
