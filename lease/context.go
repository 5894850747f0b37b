package lease

import "context"

// Context returns a child of parent that is done when the belief ends, with the cause; or
// when parent is done, with the cause of that; or when stop is called.
//
//	ctx, stop := l.Context(ctx)
//	defer stop()
//
// # Details
//
// Call stop when the work is done, as that of context.WithCancel.
//
// The context reads the clock whenever it is asked, be it Err, Done or Value, so a process
// that was stopped, or whose machine slept, learns of the end before it learns anything
// else. A context derived from it by package context, or a task of package async, is
// cancelled in the same step; its own Err does not read the clock. Where no other goroutine
// has run since the process was stopped, ask the context itself, or [Check].
//
// Otherwise the context is as any other: its Deadline is the parent's, for a term that is
// renewed has none, and its children need no goroutine.
func (l *Lease) Context(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	b := l.bind(parent)
	return b, b.stop
}

// Check reads the clock for every lease that ctx is under, and returns the cause of the
// nearest whose belief has ended; else the cause of ctx, nil while that is not done.
//
//	if err := lease.Check(ctx); err != nil {
//		return err // before each write
//	}
//
// # Details
//
// Check works for any ctx that is derived from one of a lease, also by
// context.WithoutCancel, and costs as much as [Lease.Err].
func Check(ctx context.Context) error {
	b, _ := ctx.Value(boundKey{}).(*bound)
	for ; b != nil; b = b.outer {
		if err := b.lease.Err(); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// boundKey is the key under which a context shows the nearest lease that it is under.
type boundKey struct{}

// A bound is a context of a lease. It embeds a context of package context, which
// propagates to children; package context finds that by Done and Value.
type bound struct {
	context.Context
	cancel context.CancelCauseFunc
	lease  *Lease
	outer  *bound // of the lease around it; nil: there is none
}

// bind makes a context of l below parent.
func (l *Lease) bind(parent context.Context) *bound {
	b := &bound{lease: l}
	b.Context, b.cancel = context.WithCancelCause(parent)
	b.outer, _ = parent.Value(boundKey{}).(*bound)
	l.mu.Lock()
	if l.ended.Load() == nil {
		if l.contexts == nil {
			l.contexts = map[*bound]struct{}{}
		}
		l.contexts[b] = struct{}{}
	}
	l.mu.Unlock()
	b.look()
	return b
}

// stop ends b, and has its lease forget it.
func (b *bound) stop() {
	b.lease.mu.Lock()
	delete(b.lease.contexts, b)
	b.lease.mu.Unlock()
	b.cancel(context.Canceled)
}

// look reads the clock, for the leases around b as well, and cancels what has ended. It
// cancels b also if another goroutine has noted the end: that goroutine may not have come to
// b yet, and whoever asks b must not go on in the meantime.
func (b *bound) look() {
	for ; b != nil; b = b.outer {
		if b.Context.Err() != nil {
			continue
		}
		if err := b.lease.Err(); err != nil {
			b.cancel(err)
		}
	}
}

func (b *bound) Err() error {
	b.look()
	return b.Context.Err()
}

func (b *bound) Done() <-chan struct{} {
	b.look()
	return b.Context.Done()
}

func (b *bound) Value(key any) any {
	b.look()
	if key == (boundKey{}) {
		return b
	}
	return b.Context.Value(key)
}

// String names b where a context is printed.
func (b *bound) String() string { return "lease.Context" }

// watched is a context below a scope that is under b. Contexts in between are cancelled by b
// and do not read the clock, so watched has b do that first.
type watched struct {
	context.Context
	b *bound
}

func (w watched) Err() error {
	w.b.look()
	return w.Context.Err()
}

func (w watched) Done() <-chan struct{} {
	w.b.look()
	return w.Context.Done()
}
