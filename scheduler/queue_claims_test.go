package scheduler

import (
	"slices"
)

// take cancels one task.
func (m *queueModel) take(last bool) {
	var all []*modelItem
	for _, it := range slices.Concat(m.ready, m.delayed) {
		if it.n != nil {
			all = append(all, it)
		}
	}
	if len(all) == 0 {
		return
	}
	it := all[len(all)-1]
	if !last {
		it = all[(m.next(256)<<8|m.next(256))%len(all)]
	}
	if !it.n.claim(Cancelled) {
		m.fault("%v cannot be cancelled", it)
	}
	it.n.forget()
	m.q.unlink(it.n)
	m.lost(it, Cancelled)
}

// lost books that it has ended without a run.
func (m *queueModel) lost(it *modelItem, to State) {
	is := func(other *modelItem) bool { return other == it }
	m.ready = slices.DeleteFunc(m.ready, is)
	m.delayed = slices.DeleteFunc(m.delayed, is)
	m.ended[to]++
	if m.current == it {
		m.current = nil
	}
}

// claimReady cancels all that is queued: what was started is not.
func (m *queueModel) claimReady() {
	all := slices.Clone(m.ready)
	if len(all) > 0 && all[0] == m.current {
		all = all[1:]
	}
	i := 0
	count := m.q.dropQueued(Cancelled, func(n *node) {
		if i >= len(all) || all[i].n != n {
			m.fault("cancelled out of order")
		} else if i++; n != nil {
			n.forget()
		}
	})
	if count != len(all) || i != count {
		m.fault("%d cancelled, %d told of, %d were queued", count, i, len(all))
	}
	for _, it := range all {
		m.lost(it, Cancelled)
	}
}

func (m *queueModel) claimPeriodic() {
	var told []*node
	m.q.dropPeriodic(Cancelled, func(n *node) { n.forget(); told = append(told, n) })
	for _, it := range slices.Clone(m.ready) {
		if it.n != nil && it.n.period != nil {
			if len(told) == 0 || told[0] != it.n {
				m.fault("%v is periodic and was left", it)
				return
			}
			told = told[1:]
			m.lost(it, Cancelled)
		}
	}
	if len(told) > 0 {
		m.fault("%d too many were cancelled", len(told))
	}
}

func (m *queueModel) claimDelayed() {
	count := m.q.dropDelayed(Cancelled, func(n *node) { n.forget() })
	if count != len(m.delayed) {
		m.fault("%d were cancelled, %d delayed", count, len(m.delayed))
	}
	for _, it := range slices.Clone(m.delayed) {
		m.lost(it, Cancelled)
	}
}

func (m *queueModel) claimOldest() {
	m.sortDelayed()
	var want *modelItem
	if i := slices.IndexFunc(m.ready, func(it *modelItem) bool { return !it.batch && it != m.current }); i >= 0 {
		want = m.ready[i]
	} else if len(m.delayed) > 0 {
		want = m.delayed[0]
	}
	told := 0
	m.q.dropOldest(Rejected, func(n *node) {
		if told++; want == nil || want.n != n {
			m.fault("the oldest is %v", want)
		} else if n != nil {
			n.forget()
		}
	})
	if (want != nil) != (told == 1) {
		m.fault("%d were told of, the oldest is %v", told, want)
	}
	if want != nil {
		m.lost(want, Rejected)
	}
}
