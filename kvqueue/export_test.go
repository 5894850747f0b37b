package kvqueue

import (
	"context"
	"errors"

	"github.com/ambit-go/ambit/lease"
)

// Sizes is what a handle keeps.
type Sizes struct {
	Held, Arrived, Places, Sightings, Waiters, Conflicts int
}

// Sizes returns how much a handle keeps.
func (q *Queue) Sizes() (n Sizes) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seen.mu.Lock()
	defer q.seen.mu.Unlock()
	n.Sightings, n.Waiters, n.Conflicts = len(q.seen.ring), len(q.waiters), int(q.counts.conflicts.Load())
	if q.session != nil && q.session.member != nil {
		m := q.session.member
		m.mu.Lock()
		defer m.mu.Unlock()
		n.Held, n.Arrived, n.Places = len(m.claims), len(m.arrived), len(m.places)
	}
	return n
}

// Deal, for tests: it returns the ends of the shares.
func Deal(wants []int, attempts []int, sizes []int, most int, fits func(takers, items int) bool) (ends []int) {
	first := make([]ready, len(attempts))
	for i := range first {
		first[i].rec = record{failures: uint64(attempts[i]), size: uint64(sizes[i])}
	}
	for _, s := range deal(wants, first, most, fits) {
		ends = append(ends, s.end)
	}
	return ends
}

// Expire lets the deadline of the session of q be over, before anybody has noticed.
func (q *Queue) Expire() {
	q.mu.Lock()
	l := q.session
	q.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = lease.Term{}
}

// ShutDown ends what stands behind q, as async.Shutdown does.
func (q *Queue) ShutDown(ctx context.Context) error {
	return stopped(q.group.Stop(ctx, errors.New("shut down")))
}

// Delayed returns what says how many settlements of the present session wait for their time.
func (q *Queue) Delayed() func() int {
	q.mu.Lock()
	l := q.session
	q.mu.Unlock()
	return func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.delayed)
	}
}

// Answered waits for a request that has its answer.
func Answered(ctx context.Context, answer error) (open bool, err error) {
	r := newRequest(0)
	r.answer(answer)
	return new(combiner[int]).await(ctx, []*request[int]{r})
}
