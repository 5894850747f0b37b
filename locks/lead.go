package locks

import (
	"context"
	"errors"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Lead runs body whenever this process holds the lock of a key, until body returns without
// having lost it, or ctx ends. One of all the processes that call Lead with a key leads at a time.
// After a loss body is cancelled and joined, as by [Manager.With], and Lead
// waits for the lock again. A store that does not answer is waited for, too, for as long as ctx
// lasts.
//
// It returns what body returned; if ctx has ended, an error that matches its cause. The error that
// body returned when it had lost the lock is told to the observers alone. Errors of the call itself
// are those of With, without ErrUnavailable: [ErrValidation], [ErrReentrant], [ErrConflict],
// [ErrClosed], and [*NotGrantedError] with [NoWait] or [Wait].
func (m *Manager) Lead(ctx context.Context, key string, body func(ctx context.Context) error, options ...LockOption) error {
	if body == nil {
		panic("locks: a nil body: pass what is to be called")
	}
	c, err := m.call(key, options)
	if err != nil {
		return err
	}
	name := m.name(key)
	if h, err := m.around(ctx, name, c); err != nil {
		return err
	} else if h != nil {
		return runUnder(ctx, body, nil, h)
	}
	pause := async.Jitter(0.2, async.Backoff(100*time.Millisecond, 5*time.Second))
	for failures := 1; ; failures++ {
		h, err := m.acquire(ctx, name, c)
		switch {
		case err == nil:
			failures = 0
			again, err := m.lead(ctx, h, body)
			if !again {
				return err
			}
		case ctx.Err() != nil || !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrClosed):
			return err
		}
		if failures > 0 {
			_ = async.Sleep(ctx, pause(failures)) // acquire says that ctx has ended
		}
	}
}

// lead runs body once. again says that the lock was lost, and ctx lasts.
func (m *Manager) lead(ctx context.Context, h *Hold, body func(ctx context.Context) error) (again bool, err error) {
	h.scoped = true
	err = runUnder(ctx, body, []*Hold{h}, h)
	m.tell(Event{Kind: EventLed, Key: h.name.Key, Token: h.token, Err: err})
	return h.loss() != nil && ctx.Err() == nil, err
}
