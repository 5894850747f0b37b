package lease

import (
	"context"
	"slices"
	"sync/atomic"
)

// A flight is a call on its way, as the leases see it that it renews.
type flight struct {
	landed chan struct{} // closed when the call has returned and the answers are noted
	cancel context.CancelFunc
	needed atomic.Int64 // leases that still need it
}

// leave says that one lease needs the call no more. A call that nobody needs is cut short.
func (f *flight) leave() {
	if f.needed.Add(-1) == 0 {
		f.cancel()
	}
}

// board notes a call that renews the lease.
func (l *Lease) board(f *flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries++
	l.flights = append(l.flights, f)
}

// land forgets a call that has returned.
func (l *Lease) land(f *flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flights = slices.DeleteFunc(l.flights, func(other *flight) bool { return other == f })
}

// leave says that the lease needs none of its calls any more. None is boarded after that:
// the keeper has forgotten the lease before.
func (l *Lease) leave() {
	l.mu.Lock()
	flights := slices.Clone(l.flights)
	first := !l.left
	l.left = true
	l.mu.Unlock()
	if first {
		for _, f := range flights {
			f.leave()
		}
	}
}

// landings waits until no call that renews the lease is on its way.
func (l *Lease) landings(ctx context.Context) error {
	for {
		f := l.flight()
		if f == nil {
			return nil
		}
		select {
		case <-f.landed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// flight returns a call that renews the lease, nil if none is on its way.
func (l *Lease) flight() *flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.flights) == 0 {
		return nil
	}
	return l.flights[0]
}
