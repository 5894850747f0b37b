package taskqueue

import (
	"context"
	"runtime"

	"github.com/ambit-go/ambit/taskqueue/store"
)

// A share is what a queue may have of the places. It is guarded by the worker's mu.
type share struct {
	weight int
	places int  // while others want some, too
	most   int  // at once, where there are not enough for the shares of all
	held   int  // by claims on their way and by runs
	wants  bool // it waits for places, or its last claim got as much as it asked for
	asks   bool // a claim is on its way, which may take long: nobody waits for its turn
	// turn goes on by 1/weight with each place that it takes. Where there are fewer
	// places than queues that want one, the queue with the least turn is next: stride
	// scheduling (Waldspurger and Weihl, 1995).
	turn float64
}

// lacks returns how many places are kept for a queue.
func (s *share) lacks() int {
	if !s.wants {
		return 0
	}
	return max(s.places-s.held, 0)
}

// took notes that a queue has taken n places; n < 0: that it has got less for them.
func (s *share) took(n int) {
	s.held += n
	s.turn += float64(n) / float64(s.weight)
}

// newShares divides places between queues by their weights, at least one for each.
func newShares(weights map[string]int, places int) map[string]*share {
	sum := 0
	for _, weight := range weights {
		sum += weight
	}
	all := make(map[string]*share, len(weights))
	for name, weight := range weights {
		most := max(min((places*weight+sum-1)/sum, places-1), 1)
		all[name] = &share{weight: weight, places: max(places*weight/sum, 1), most: most, wants: true} // until a claim has told that nothing is due
	}
	return all
}

// reserve waits for free places and takes them. 0: ctx is done, which may be a little later than the context of
// Work: who has ended that, and gives a place back then, does not get another run. ends is how many runs
// have ended by then.
func (w *worker) reserve(ctx context.Context, queue string) (n, ends int) {
	own := w.shares[queue]
	w.change(func() {
		if !own.wants {
			own.turn = max(own.turn, w.leastTurnLocked(own)) // it has saved nothing up
		}
		own.wants = true
	})
	w.gatherPlaces(ctx, own)
	w.await(ctx, func() bool {
		if ctx.Err() != nil || w.until.Err() != nil {
			return false
		}
		n, ends = min(w.mayTakeLocked(own), MaxBatch), w.ends
		if n <= 0 {
			n = 0
			return false
		}
		w.free -= n
		own.took(n)
		own.asks = true
		return true
	})
	if n > 0 && len(w.shares) > 1 {
		w.change(func() {}) // the queues behind it have waited for its turn
	}
	return n, ends
}

// gatherPlaces waits for a free place, and lets other goroutines run as long as that brings more: runs that are about
// to end. A claim of many costs little more than one of few.
func (w *worker) gatherPlaces(ctx context.Context, own *share) {
	n := 0
	look := func() bool { n = w.mayTakeLocked(own); return n > 0 }
	for before := 0; w.await(ctx, look) && n > before; {
		before = n
		runtime.Gosched()
	}
}

// mayTakeLocked returns how many places a queue may take: those of its share, and those
// that no other queue lacks. Where there are not enough for the shares of all, it is as many
// as bring it up to the queue that is next, for others have passed it while its last claim
// was on its way; but no more than its part, and never all places: its store may hang.
func (w *worker) mayTakeLocked(own *share) int {
	sum, lacks, others := 0, 0, false
	for _, s := range w.shares {
		sum += s.places
		if s != own && s.wants {
			others = others || !s.asks
			lacks += s.lacks()
		}
	}
	switch {
	case sum <= w.o.concurrency:
		return max(w.free-lacks, min(own.lacks(), w.free))
	case !others:
		return w.free
	}
	behind := w.leastTurnLocked(own) - own.turn
	if behind < 0 {
		return 0
	}
	return min(w.free, 1+int(behind*float64(own.weight)), own.most)
}

// leastTurnLocked returns the least turn of the other queues that want places; 0 if none
// does.
func (w *worker) leastTurnLocked(own *share) (least float64) {
	found := false
	for _, s := range w.shares {
		if s != own && s.wants && !s.asks && (!found || s.turn < least) {
			least, found = s.turn, true
		}
	}
	return least
}

// mostUnsettled is how many runs wait to be settled at most, for each place: with one, claims wait for settles, and more
// pile up if the store is slower than the handlers. A process that is killed has done them for nothing.
const mostUnsettled = 4

// vacate gives the place of a run back whose handler has ended, though the store has
// not been told yet: the next task is claimed meanwhile. While as many as mostUnsettled says
// wait to be settled it keeps its place.
func (w *worker) vacate(key runKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = append(w.ended, key)
	w.vacateLocked()
	w.wakeLocked()
}

// vacateLocked has those give their places back that have ended first.
func (w *worker) vacateLocked() {
	for len(w.ended) > 0 && w.unsettled < mostUnsettled*w.o.concurrency {
		key := w.ended[0]
		w.ended = w.ended[1:]
		if r := w.runs[key]; r != nil { // else it is settled already
			r.vacated = true
			w.unsettled++
			w.freeLocked(key.queue)
		}
	}
}

func (w *worker) freeLocked(queue string) {
	w.free++
	w.shares[queue].held--
}

// release forgets runs that have been settled, or cannot be, and gives those of their
// places back that are not free yet. Runs that were settled together are released
// together: so the next claim is for as many.
func (w *worker) release(queue string, runs ...store.Ref) {
	w.change(func() {
		for _, ref := range runs {
			key := runKey{queue, ref}
			if w.runs[key].vacated {
				w.unsettled--
			} else {
				w.freeLocked(queue)
			}
			delete(w.runs, key)
		}
		w.vacateLocked()
		w.ends += len(runs)
		clear(w.idle)
	})
}
