package kvqueue

import (
	"slices"
	"time"
)

// A share is what one of those who want items gets.
type share struct{ begin, end int }

// deal gives the first ready items of a queue, in order, to those who want some, in order: to each as
// many as it wants, but an item that has been tried before goes to somebody alone, so that
// it cannot take a batch with it when it fails again. fits returns whether items of such a weight for that many
// takers fit into one transaction, and most is how many bytes one share may have.
func deal(wants []int, first []ready, most int, fits func(takers, items int) bool) []share {
	var shares []share
	n, weight := 0, 0
	for _, want := range wants {
		s := share{n, n}
		bytes := 0
		for n < len(first) && s.end-s.begin < want && fits(len(shares)+1, weight+first[n].rec.weight()) {
			h := first[n]
			bytes += int(h.rec.size)
			alone := h.rec.attempts() > 0
			if s.end > s.begin && (alone || bytes > most) {
				break
			}
			n, weight = n+1, weight+h.rec.weight()
			if s.end = n; alone {
				break
			}
		}
		if s.begin == s.end {
			break
		}
		shares = append(shares, s)
	}
	return shares
}

// A waiter is a call that wants items.
type waiter struct {
	most int
	try  bool // it does not wait: it is answered with nothing when there is nothing
	came time.Time
	// answered is guarded by Queue.mu: whoever sets it is the one that answers.
	done  chan struct{}
	items []Item
	err   error
}

func newWaiter(most int, try bool) *waiter {
	return &waiter{most: most, try: try, came: time.Now(), done: make(chan struct{})}
}

// serve and fail answer a waiter that was taken off the list, once.
func (w *waiter) serve(items []Item) { w.items = items; close(w.done) }
func (w *waiter) fail(err error)     { w.err = err; close(w.done) }

// wanted returns how many items those who wait want together, and what the least is that one of them wants.
func (q *Queue) wanted() (n, least int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, w := range q.waiters {
		most := min(w.most, q.maxItems)
		if n += most; i == 0 || most < least {
			least = most
		}
	}
	return min(n, q.maxItems), least
}

// waiting returns how many wait for items.
func (q *Queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiters)
}

// unlist takes a waiter off the list, and reports whether it was on it.
func (q *Queue) unlist(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiters, w)
	if i < 0 {
		return false
	}
	q.waiters = slices.Delete(q.waiters, i, i+1)
	return true
}

// refuse answers all who wait with an error.
func (q *Queue) refuse(err error) {
	q.mu.Lock()
	waiters := q.waiters
	q.waiters = nil
	q.mu.Unlock()
	for _, w := range waiters {
		w.fail(err)
	}
}

// nothing answers those who would not wait, and came before what was seen.
func (q *Queue) nothing(waiters []*waiter) {
	for _, w := range waiters {
		if w.try && q.unlist(w) {
			w.serve(nil)
		}
	}
}

func (q *Queue) listed() []*waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.waiters)
}

// hand gives items, in order, to those who wait, first come first served. It returns how many
// were served, and what nobody was there for any more.
func (q *Queue) hand(items []Item) (served int, left []Item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := make([]ready, len(items))
	for i, item := range items {
		first[i] = ready{key: item.Key, rec: item.claim.rec}
	}
	wants := make([]int, len(q.waiters))
	for i, w := range q.waiters {
		wants[i] = w.most
	}
	shares := deal(wants, first, q.maxItem, func(int, int) bool { return true })
	n := 0
	for i, s := range shares {
		q.waiters[i].serve(slices.Clone(items[s.begin:s.end]))
		n = s.end
	}
	q.waiters = slices.Delete(q.waiters, 0, len(shares))
	return len(shares), items[n:]
}
