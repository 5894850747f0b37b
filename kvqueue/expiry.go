package kvqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file lets ids go whose items are gone, and whose [Retention] is over. The time is counted in
// marks: each is a hint that was the present one then, and begins a session of the store that nobody renews, a
// tenth of the retention long. When that has ended the next mark is due. An id whose hint is less than that
// of a mark is older than all that the sessions from this mark on have lasted. So the clock is the
// store's, the processes may come and go, and none has to live for long.

// marksInRetention is how many marks a retention has.
const marksInRetention = 10

// A mark is a moment, by the hint that was the present one.
type mark struct {
	Hint  uint64        `json:"hint"`
	Lasts time.Duration `json:"lasts"` // the session that began with it
}

// marks are the last ones, in order.
type marks struct {
	Marks []mark `json:"marks"`
	// At is when the last one was made, by the clock of who made it. Sessions of a file end when the
	// machine starts again: the next mark waits for both, unless that clock is ahead of ours.
	At time.Time `json:"at"`
}

func (l layout) marks() []byte     { return []byte(l.root + "t") }
func (l layout) hourglass() []byte { return []byte(l.root + "u") }

func decodeMarks(r Result) (m marks, rev Rev, err error) {
	if len(r.Pairs) == 0 {
		return m, 0, nil
	}
	p := r.Pairs[0]
	if err := json.Unmarshal(p.Value, &m); err != nil {
		return marks{}, p.Rev, fmt.Errorf("kvqueue: the store holds marks that this package did not write: %q", p.Value)
	}
	return m, p.Rev, nil
}

// runs reports whether the last mark is younger than its session was to last.
func (m marks) runs(now time.Time) bool {
	if len(m.Marks) == 0 {
		return false
	}
	age := now.Sub(m.At)
	return age >= 0 && age < m.Marks[len(m.Marks)-1].Lasts
}

// next returns the marks with one more, and the hint below which all ids are older than the retention. A
// producer may take some time from its look at the revision to its transaction: there is one mark more for that. Marks
// from the future are of a store that was mirrored: by them what is added now would be old.
func (m marks) next(now mark, retention time.Duration) (n marks, due uint64) {
	if last := len(m.Marks) - 1; last >= 0 && m.Marks[last].Hint > now.Hint {
		m.Marks = nil
	}
	age := time.Duration(0)
	for i := len(m.Marks) - 1; i >= 0; i-- {
		if age += m.Marks[i].Lasts; age >= retention+now.Lasts {
			due, m.Marks = m.Marks[i].Hint, m.Marks[i:]
			break
		}
	}
	return marks{append(m.Marks, now), time.Now()}, due
}

// tendOwnIDs is what a handle does that has added an id.
func (q *Queue) tendOwnIDs(ctx context.Context) error { return q.tendIDs(ctx, true) }

// tendOthersIDs is what a handle does that claims items.
func (m *member) tendOthersIDs(ctx context.Context) error { return m.q.tendIDs(ctx, false) }

// tendIDs looks again and again, until ctx ends, whether there are ids to let go. A handle that has added none only
// looks whether there are marks, and not at once.
func (q *Queue) tendIDs(ctx context.Context, adds bool) error {
	for first := true; ; first = false {
		if adds || !first {
			_ = q.tend(ctx, adds) // what fails is done at the next look
		}
		if wait := q.tenth() / 8; async.Sleep(ctx, wait+rand.N(wait)) != nil {
			return nil
		}
	}
}

// tenth is how long a mark is to last.
func (q *Queue) tenth() time.Duration {
	return max(q.Policy().Retention/marksInRetention, q.limits.MinTTL)
}

// tend makes the next mark if that is due, after it has let go what is older than the retention
// then: if this process ends in the middle of it, the next goes on.
func (q *Queue) tend(ctx context.Context, begins bool) error {
	s, err := q.read(ctx, Range{Begin: q.lay.marks()}, Range{Begin: q.lay.hourglass()}, Range{Begin: q.lay.policy()})
	if err != nil {
		return err
	}
	q.learn(policyOf(s.of[2]))
	last, rev, _ := decodeMarks(s.of[0]) // foreign ones are named by Audit until the next are written
	if rev == 0 && !begins || len(s.of[1].Pairs) > 0 || last.runs(time.Now()) {
		return nil
	}
	next, due := last.next(mark{s.now(), q.tenth()}, q.Policy().Retention)
	if err := q.forgetIDs(ctx, due); err != nil {
		return err
	}
	return q.putMarks(ctx, next, rev)
}

// putMarks writes the marks, if they still are as they were at rev, and begins the session of the last.
func (q *Queue) putMarks(ctx context.Context, m marks, rev Rev) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	session, err := q.kv.Session(ctx, m.Marks[len(m.Marks)-1].Lasts)
	if err != nil {
		return err
	}
	guard := Guard{Key: q.lay.marks(), Is: Unchanged, Rev: rev}
	if rev == 0 {
		guard.Is = Absent
	}
	writes := []Write{{Key: q.lay.marks(), Value: text}, {Key: q.lay.hourglass(), Session: session}}
	_, err = q.kv.Commit(ctx, []Guard{guard}, writes)
	if err != nil && !errors.Is(err, ErrUnknown) { // it ends by itself, if this fails
		_ = session.End(ctx)
	}
	return err
}

// forgetIDs lets the ids go whose hints are less than due and whose items are gone, those of the oldest items
// first. It reads no other ids but those whose items are as old, and still there.
func (q *Queue) forgetIDs(ctx context.Context, due uint64) error {
	if due == 0 {
		return nil
	}
	var some []Pair
	size := 0
	for p, err := range q.span(ctx, "j", 0, due-1, false) {
		if err != nil {
			return err
		}
		k, ours := q.lay.itemIn("j", p.Key)
		if ours && k.hint() >= due {
			break
		}
		if !ours { // Audit names it
			continue
		}
		cost := q.lay.idSize(string(p.Value))
		if len(some) == q.maxItems || size+cost > q.maxItem {
			if err := q.forgetSome(ctx, some); err != nil {
				return err
			}
			some, size = nil, 0
		}
		some, size = append(some, p), size+cost
	}
	return q.forgetSome(ctx, some)
}

// forgetSome lets those of some ids go whose items are gone. An item that is gone never comes again.
func (q *Queue) forgetSome(ctx context.Context, ids []Pair) error {
	if len(ids) == 0 {
		return nil
	}
	var ranges []Range
	for _, p := range ids {
		ranges = append(ranges, Range{Begin: q.lay.data(keyOf(p.Key)), KeysOnly: true})
	}
	items, _, err := q.kv.Read(ctx, ranges...)
	if err != nil {
		return err
	}
	t := transaction{q: q}
	for i, p := range ids {
		if len(items[i].Pairs) == 0 {
			t.guards = append(t.guards, Guard{Key: p.Key, Is: Unchanged, Rev: p.Rev})
			t.writes = append(t.writes, Write{Key: p.Key, Delete: true}, Write{Key: q.lay.id(string(p.Value)), Delete: true})
		}
	}
	if len(t.writes) == 0 {
		return nil
	}
	_, err = q.kv.Commit(ctx, t.guards, t.writes)
	return ignore(err)
}
