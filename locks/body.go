package locks

import (
	"context"
	"sync"
	"time"
)

// A body is what runs under holds, and is to be cancelled when one of them is lost.
type body struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	holds  []*Hold
	runs   bool // false: it is a call that waits for the rest of its locks

	mu      sync.Mutex
	ended   bool
	overrun *time.Timer // fires when it runs on after the end of the lease; nil: nobody has asked
	calls   sync.WaitGroup
}

// needs returns a body that is cancelled with ctx, and when one of the holds is lost. runs
// says whether there is a function that may overrun.
func needs(ctx context.Context, runs bool, holds ...*Hold) *body {
	b := &body{holds: holds, runs: runs}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	for _, h := range holds {
		if err := h.bind(b); err != nil {
			b.cancel(err)
		}
	}
	return b
}

func (h *Hold) bind(b *body) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost != nil {
		return h.lost
	}
	if h.ended {
		return ErrReleased
	}
	if h.bodies == nil {
		h.bodies = map[*body]struct{}{}
	}
	h.bodies[b] = struct{}{}
	return nil
}

// end is called when the body and all that it started have ended.
func (b *body) end() {
	for _, h := range b.holds {
		h.mu.Lock()
		delete(h.bodies, b)
		h.mu.Unlock()
	}
	b.mu.Lock()
	b.ended = true
	if b.overrun != nil && b.overrun.Stop() {
		b.calls.Done()
	}
	b.mu.Unlock()
	b.calls.Wait()
	b.cancel(context.Canceled)
}

// overruns has the caller of h, which was lost, told if the body runs on for longer than d. If
// it did not ask for that, the caller of another hold is told.
func (b *body) overruns(h *Hold, d time.Duration, lost *LostError) {
	if !b.runs { // and its holds may become more
		return
	}
	for _, other := range b.holds {
		if h.c.overrun == nil {
			h = other
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.c.overrun == nil || b.ended || b.overrun != nil {
		return
	}
	b.calls.Add(1)
	b.overrun = time.AfterFunc(max(d, 0), func() {
		defer b.calls.Done()
		h.overran.Do(func() { h.c.overrun(lost) })
	})
}

// context returns the context of the body, below ctx, which is a scope under b.ctx.
func (b *body) context(ctx context.Context) context.Context {
	for _, h := range b.holds {
		ctx = hold(ctx, h)
	}
	return watched{ctx, b}
}

// watched is the context of a body. It looks at the clock whenever it is asked, so that
// a body that was stopped together with its process learns first that its lease is over.
type watched struct {
	context.Context
	b *body
}

func (c watched) Err() error {
	c.look()
	return c.Context.Err()
}

func (c watched) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

// look cancels the body if a lease is over, or was given back. It does so also if somebody else
// has noted that: that goroutine may not have come to the body yet, which must not go on
// meanwhile.
func (c watched) look() {
	for _, h := range c.b.holds {
		if err := h.look(h.m.clock.Soon()); err != nil {
			c.b.cancel(err)
		}
	}
}
