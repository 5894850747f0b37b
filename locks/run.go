package locks

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A run is one run of a body. All locks that one call has taken share one: a body gets on or
// hangs, whatever it holds.
type run struct {
	said    atomic.Int64 // when the body said last that it gets on
	refused atomic.Bool  // a renewal was refused since, because it had not
	overran sync.Once    // that it runs on is told once, also if bodies of reentrant calls run on, too
}

// notBegun is the time of a body that waits for the rest of its locks: it need say nothing.
const notBegun = time.Duration(math.MaxInt64)

func newRun(now time.Duration) *run {
	r := new(run)
	r.say(now)
	return r
}

func (r *run) say(now time.Duration) { r.said.Store(int64(now)) }

// Progress says that the body gets on, see [RequireProgress]. It counts for all locks that one
// call of [Manager.WithAll] has taken.
func (h *Hold) Progress() {
	if h.run.say(h.m.clock.Now()); h.run.refused.Swap(false) {
		h.m.keeper.RenewNow()
	}
}

// stalled says whether the body had to say that it gets on, and has not.
func (h *Hold) stalled(now time.Duration) bool {
	return h.c.progress > 0 && now-time.Duration(h.run.said.Load()) > h.c.progress
}

// under returns a child of ctx that is done when one of the holds ends.
func under(ctx context.Context, holds []*Hold) (_ context.Context, stop func()) {
	stops := make([]context.CancelFunc, len(holds))
	for i, h := range holds {
		ctx, stops[i] = h.lease.Context(ctx)
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// watchOverrun has the function of [OnOverrun] called if the body of holds still runs when
// somebody else may be granted one of them. stop ends that, and waits for a call on its way.
func watchOverrun(holds []*Hold) (stop func()) {
	i := slices.IndexFunc(holds, func(h *Hold) bool { return h.c.overrun != nil })
	if i < 0 {
		return func() {}
	}
	all, forget := under(context.Background(), holds)
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-all.Done():
		case <-ended:
			return
		}
		lost, _ := context.Cause(all).(*LostError)
		for _, h := range holds {
			if lost != nil && h.loss() == lost && !h.freeBefore(ended) {
				holds[i].run.overran.Do(func() { holds[i].c.overrun(lost) })
				return
			}
		}
	})
	return func() {
		close(ended)
		watch.Wait()
		forget()
	}
}

// freeBefore waits until somebody else may be granted a lock that was lost. It says true if
// the body has ended before.
func (h *Hold) freeBefore(ended <-chan struct{}) bool {
	left := time.Duration(0)
	if h.loss().Reason != LostStolen {
		left = h.lease.Term().End() - h.m.clock.Now()
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-t.C:
		return false
	case <-ended:
		return true
	}
}
