package kvqueue

import (
	"context"
	"sync"

	"github.com/ambit-go/ambit/async"
)

// This file is how claims find the groups that are not held, and how these take turns.

// turns say whose turn it is. A handle gives no group a second item while another waits that is not held, and of
// items with a group and without it takes as many, as long as there are both.
type turns struct {
	mu      sync.Mutex
	behind  string // the last group from which an item was claimed: the next is behind it, in the order of the keys
	grouped bool   // items of groups are first
	tidying bool   // markers are being deleted
}

// next returns behind which group to look first, and whether items of groups are first.
func (t *turns) next() (behind string, grouped bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.behind, t.grouped
}

// begin notes that there are no groups: the next look begins with the first.
func (t *turns) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.behind = ""
}

// taken notes which items were claimed.
func (t *turns) taken(items map[int64][]ready) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, lastGroup := -1, -1
	for _, of := range items {
		for _, r := range of {
			if r.turn > last {
				last, t.grouped = r.turn, r.rec.group == ""
			}
			if r.rec.group != "" && r.turn > lastGroup {
				lastGroup, t.behind = r.turn, r.rec.group
			}
		}
	}
}

// inTurns returns the first ready items without a group and those of groups in turns, most at the most.
func inTurns(without, heads []ready, grouped bool, most int) (all []ready) {
	for len(all) < most && len(without)+len(heads) > 0 {
		from := &without
		if len(without) == 0 || grouped && len(heads) > 0 {
			from = &heads
		}
		r := (*from)[0]
		r.turn, *from = len(all), (*from)[1:]
		all, grouped = append(all, r), !grouped
	}
	return all
}

// markers are those of the next groups behind one: not many more than are to be claimed.
func (l layout) markers(behind string, most int) Range {
	limit := min(max(2*most, 8), 32)
	return Range{Begin: append(l.marker(behind), 0), End: after(l.all("m")), Limit: limit, KeysOnly: true}
}

// headOf is what is to be read of a group: whether it is held, and its first item.
func (l layout) headOf(group string) Range {
	return Range{Begin: l.held(group), End: after(l.held(group)), Limit: 2}
}

// A round is a look at the groups that have markers: at each of them once.
type round struct {
	q     *Queue
	heads []ready  // the first items of the groups that are not held
	empty []string // groups that have no ready items
	waits []Pair   // what says that a group waits
	seen  int      // markers
}

// addHeads adds the first items of groups to what was looked at. marked are the next markers behind a group.
func (q *Queue) addHeads(ctx context.Context, l *look, most int, marked Result, behind string) error {
	if len(marked.Pairs) == 0 && behind == "" {
		return nil
	}
	heads, err := q.headsOf(ctx, min(most, q.maxItems/2), marked, behind)
	l.front = inTurns(l.front, heads, l.grouped, most)
	return err
}

// headsOf looks for the first items of groups that are not held, and returns as many as are wanted if there are so
// many. marked are the next markers behind a group.
func (q *Queue) headsOf(ctx context.Context, most int, marked Result, behind string) ([]ready, error) {
	r, last, wrapped := round{q: q}, behind, behind == ""
	for {
		if err := r.add(ctx, marked); err != nil {
			return nil, err
		}
		switch {
		case len(r.heads) >= most || wrapped && !marked.More:
			if r.tidy(); r.seen == 0 {
				q.turns.begin()
			}
			return r.heads, nil
		case marked.More:
			last = string(marked.Pairs[len(marked.Pairs)-1].Key[len(q.lay.all("m")):])
		default:
			wrapped, last = true, ""
		}
		next := q.lay.markers(last, most)
		if wrapped && behind != "" {
			next.End = append(q.lay.marker(behind), 0)
		}
		results, _, err := q.glance(ctx, next)
		if err != nil {
			return nil, err
		}
		marked = results[0]
	}
}

// add looks at the groups of some markers.
func (r *round) add(ctx context.Context, marked Result) error {
	r.seen += len(marked.Pairs)
	var groups []string
	var ranges []Range
	for _, p := range marked.Pairs {
		if group, ok := r.q.lay.markedIn(p.Key); ok { // else Audit names it
			groups, ranges = append(groups, group), append(ranges, r.q.lay.headOf(group))
		}
	}
	if len(groups) == 0 {
		return nil
	}
	results, _, err := r.q.glance(ctx, ranges...)
	if err != nil {
		return err
	}
	for i, group := range groups {
		of := results[i].Pairs
		switch head, ok, empty := r.q.lay.headIn(results[i]); {
		case ok:
			r.heads = append(r.heads, head)
		case empty:
			r.empty = append(r.empty, group)
		case r.q.lay.waits(of[0]):
			r.waits = append(r.waits, of[0])
		}
	}
	return nil
}

// headIn returns the first item of a group, by what was read of it, if the group is not held; and whether it has no
// ready item.
func (l layout) headIn(of Result) (head ready, ok, empty bool) {
	if len(of.Pairs) == 0 {
		return head, false, true
	}
	p := of.Pairs[0]
	group, k, item, ok := l.groupIn(p.Key)
	rec, _, err := decodeRecord(p.Value)
	if !ok || !item || err != nil { // a key that this package did not write stops its group; Audit names it
		return head, false, ok && !item && len(of.Pairs) == 1
	}
	rec.group = group
	return ready{key: k, rev: p.Rev, rec: rec}, true, false
}

// tidy deletes the markers of groups that have no ready items, or that wait. Nobody waits for it.
func (r *round) tidy() {
	var guards []Guard
	var writes []Write
	for _, p := range r.waits[:min(len(r.waits), r.q.maxItems)] {
		group, _, _, _ := r.q.lay.groupIn(p.Key)
		guards = append(guards, Guard{Key: p.Key, Is: Unchanged, Rev: p.Rev})
		writes = append(writes, Write{Key: r.q.lay.marker(group), Delete: true})
	}
	for _, group := range r.empty[:min(len(r.empty), r.q.maxItems-len(writes))] {
		span := r.q.lay.headOf(group)
		guards = append(guards, Guard{Key: append(span.Begin, 0), End: span.End, Is: Absent})
		writes = append(writes, Write{Key: r.q.lay.marker(group), Delete: true})
	}
	if turns := &r.q.turns; len(writes) > 0 && turns.tidies(true) {
		if r.q.group.Go(func(ctx context.Context) error {
			defer turns.tidies(false)
			_, _ = r.q.kv.Commit(ctx, guards, writes)
			return nil
		}, async.Name("kvqueue: delete markers of "+r.q.name)) != nil {
			turns.tidies(false)
		}
	}
}

// tidies notes that markers are being deleted, or are not any more, and reports whether that was not known.
func (t *turns) tidies(now bool) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	news, t.tidying = t.tidying != now, now
	return news
}

// frontRanges is what is to be read to know whether the front of the queue is as a look has seen it, and frontOf
// returns what it is by that.
func (q *Queue) frontRanges(l *look, most int) []Range {
	ranges := []Range{{Begin: q.lay.from("q", l.head.floor), End: after(q.lay.all("q")), Limit: most}}
	for _, r := range l.front {
		if r.rec.group != "" {
			ranges = append(ranges, q.lay.headOf(r.rec.group))
		}
	}
	return ranges
}

func (q *Queue) frontOf(l *look, results []Result, most int) []ready {
	first := q.lay.readyOf(results[0])
	if len(results) == 1 {
		return first
	}
	var heads []ready
	for _, of := range results[1:] {
		if head, ok, _ := q.lay.headIn(of); ok {
			heads = append(heads, head)
		}
	}
	return inTurns(first, heads, l.grouped, most)
}
