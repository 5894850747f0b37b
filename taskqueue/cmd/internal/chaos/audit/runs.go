package audit

import (
	"slices"

	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/ledger"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// settlements: a task is settled once, by the run that has it, and does not run again
// when it has ended.
func (a *audit) settlements(l *life) {
	winner := int64(0)
	for _, e := range l.of[ledger.Settled] {
		switch {
		case e.Answer == store.Stale:
			a.Stale++
		case e.Answer == store.Gone:
			a.fault("task %s was gone when its run of token %d was settled: it is kept for a month", l.id, e.Token)
		}
		if !isSettled(e) {
			continue
		}
		for _, c := range l.of[ledger.Claimed] {
			if c.Token > e.Token && c.At < e.Began {
				a.fault("R4: task %s was settled by token %d after it had been claimed with token %d", l.id, e.Token, c.Token)
			}
			if final(e) && c.Token > e.Token && c.Began > e.At {
				a.fault("task %s was claimed with token %d after it had ended with token %d", l.id, c.Token, e.Token)
			}
		}
		if final(e) {
			if winner != 0 && winner != e.Token {
				a.fault("task %s was settled twice, by tokens %d and %d", l.id, winner, e.Token)
			}
			winner = e.Token
		}
	}
	if winner != 0 && l.info != nil && l.info.Token != winner {
		a.fault("task %s was ended by token %d, and the store has token %d", l.id, winner, l.info.Token)
	}
	for _, end := range l.of[ledger.Ended] {
		if !end.Lost {
			continue
		}
		a.LostRuns++
		if slices.ContainsFunc(l.of[ledger.Settling], func(s *ledger.Entry) bool { return s.Token == end.Token }) {
			a.fault("R8: the run of task %s with token %d had lost its lease, and was settled", l.id, end.Token)
		}
	}
}

// isSettled reports whether the store has taken an outcome over.
func isSettled(e *ledger.Entry) bool {
	return e.Answer == store.Settled || e.Answer == store.Overruled
}

// final reports whether a task ends by this outcome, whatever its limits are.
func final(e *ledger.Entry) bool {
	return e.Outcome == store.Succeeded || e.Outcome == store.Buried
}

// believers: a handler that has been told that it may go on has not been replaced yet.
func (a *audit) believers(l *life) {
	for _, b := range l.of[ledger.Believes] {
		for _, s := range l.of[ledger.Started] {
			if s.Token > b.Token && s.At < b.At {
				a.fault("R8: the run of task %s with token %d was told that it may go on, %d µs after its successor with token %d had begun",
					l.id, b.Token, (b.At-s.At)/1000, s.Token)
				break
			}
		}
	}
}

// tokens: each claim has a greater token than all before it, in the whole queue.
func (a *audit) tokens() {
	var byBegin, byEnd []*ledger.Entry
	for _, id := range a.ids {
		if l := a.lives[id]; !l.shaken {
			byBegin = append(byBegin, l.of[ledger.Claimed]...)
		}
	}
	by := map[int64]*ledger.Entry{}
	for _, e := range byBegin {
		if other := by[e.Token]; other != nil && (other.ID != e.ID || other.By != e.By) {
			a.fault("R3: token %d was given for %s to %s, and for %s to %s", e.Token, other.ID, other.By, e.ID, e.By)
		}
		by[e.Token] = e
	}
	byEnd = slices.Clone(byBegin)
	slices.SortFunc(byBegin, func(x, y *ledger.Entry) int { return int(min(max(x.Began-y.Began, -1), 1)) })
	slices.SortFunc(byEnd, func(x, y *ledger.Entry) int { return int(min(max(x.At-y.At, -1), 1)) })
	greatest, n := int64(0), 0
	for _, e := range byBegin {
		for ; n < len(byEnd) && byEnd[n].At < e.Began; n++ {
			greatest = max(greatest, byEnd[n].Token)
		}
		if e.Token <= greatest {
			a.fault("R3: task %s was claimed with token %d after token %d had been given", e.ID, e.Token, greatest)
		}
	}
}
