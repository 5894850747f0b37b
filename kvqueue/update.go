package kvqueue

import (
	"context"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file claims items of a store that reads and writes in one transaction: nobody can be faster,
// so each member claims for itself.

// claimAlone claims items from the front of the queue.
func (m *member) claimAlone(ctx context.Context) (wait time.Duration, err error) {
	takers := m.self()
	if len(takers) == 0 {
		return longWait, nil
	}
	waiters := m.q.listed()
	look, err := m.look(ctx, takers[0].want)
	takers = still(takers, m.self())
	switch {
	case err != nil:
		return 0, err
	case len(takers) == 0: // there were claims that had not been shown
		return 0, nil
	case len(look.front) == 0 && m.arrives(): // it is handed over next
		return 0, nil
	case len(look.front) == 0: // the bell rings when there may be one
		m.q.nothing(waiters)
		return longWait, nil
	}
	want, fits := takers[0].want, m.fitsBeside()
	t := transaction{q: m.q, guards: []Guard{m.lives()}}
	along := m.addCarried(&t)
	payloads := async.Execute(ctx, func(ctx context.Context) ([][]byte, error) { return m.q.payloads(ctx, look.front) })
	var mine []ready
	begin := time.Now()
	rev, err := m.q.update.Update(ctx, m.q.frontRanges(look, want), func(results []Result, _ Rev) ([]Guard, []Write, error) {
		first := m.q.frontOf(look, results, want)
		mine = nil // of a try that came to nothing
		for _, s := range deal([]int{want}, first, m.q.maxItem, fits) {
			mine = first[:s.end]
		}
		return t.withClaims(m.id, mine)
	})
	m.gathering.took = time.Since(begin)
	m.unsureAfter(err)
	m.answerCarried(along, err)
	if err != nil {
		payloads.Cancel(nil)
		return 0, ignore(err)
	}
	m.given(rev, map[int64][]ready{m.id: mine})
	values, _ := payloads.Wait(ctx)
	m.keepPayloads(look.front, values)
	_, err = m.handOver(ctx)
	return 0, err
}

// withClaims returns what a transaction does, and claims items.
func (t transaction) withClaims(session int64, of []ready) ([]Guard, []Write, error) {
	t.guards, t.writes = slices.Clone(t.guards), slices.Clone(t.writes)
	for _, r := range of {
		t.claim(session, r, len(of))
	}
	if len(t.writes) == 0 { // others have claimed them
		return nil, nil, ErrConflict
	}
	return t.guards, t.writes, nil
}
