package taskqueue

import "github.com/ambit-go/ambit/taskqueue/store"

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
