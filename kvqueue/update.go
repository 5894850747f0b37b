package kvqueue

import (
	"context"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file claims items of a store that reads and writes in one transaction: nobody can be faster,
// so nobody puts down a request.

// claimAlone claims items from the front of the queue.
func (m *member) claimAlone(ctx context.Context, want int) (wait time.Duration, err error) {
	waiters := m.q.listed()
	look, err := m.q.front(ctx, want)
	if err != nil {
		return 0, err
	}
	if len(look.front) == 0 { // the bell rings when there may be one
		m.q.nothing(waiters)
		return longWait, nil
	}
	fits := m.fitsBeside()
	t := transaction{q: m.q, guards: []Guard{m.lives()}}
	along := m.addCarried(&t)
	front := Range{Begin: m.q.lay.from("q", look.head.floor), End: after(m.q.lay.all("q")), Limit: want}
	payloads := async.Execute(ctx, func(ctx context.Context) ([][]byte, error) { return m.payloads(ctx, look.front) })
	var mine []ready
	begin := time.Now()
	rev, err := m.q.update.Update(ctx, []Range{front}, func(results []Result, _ Rev) ([]Guard, []Write, error) {
		_, _ = m.release(mine, nil) // of a try that came to nothing
		first := m.q.lay.readyOf(results[0])
		mine = nil
		for _, s := range deal([]int{want}, first, m.q.maxItem, fits) {
			mine = first[:s.end]
		}
		m.try(mine)
		claims := transaction{q: m.q, guards: slices.Clone(t.guards), writes: slices.Clone(t.writes)}
		for _, h := range mine {
			claims.claim(m.id, h, len(mine))
		}
		if len(claims.writes) == 0 { // others have claimed them
			return nil, nil, ErrConflict
		}
		return claims.guards, claims.writes, nil
	})
	m.gathering.took = time.Since(begin)
	m.answerCarried(along, err)
	if err != nil || len(mine) == 0 {
		payloads.Cancel(nil)
		_, err = m.release(mine, err)
		return 0, err
	}
	m.hold(mine, rev)
	values, _ := payloads.Wait(ctx)
	return 0, m.handOver(ctx, mine, valuesOf(mine, look.front, values), rev)
}

// valuesOf picks the payloads of items from those of others; nil: not all of them are there.
func valuesOf(mine, of []ready, values [][]byte) (picked [][]byte) {
	if len(values) < len(of) {
		return nil
	}
	for _, r := range mine {
		i := slices.IndexFunc(of, func(o ready) bool { return o.key == r.key })
		if i < 0 {
			return nil
		}
		picked = append(picked, values[i])
	}
	return picked
}
