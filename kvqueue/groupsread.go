package kvqueue

import (
	"bytes"
	"context"
	"iter"
)

// This file looks at all that a store holds of groups.

// allGrouped yields the keys of groups, in the order of groups, and in each of them in the order of items: first
// that which says that the group is held, if it is. Those that this package did not write are left out, and items
// that are added meanwhile: a look at all of them ends, however fast they come.
func (q *Queue) allGrouped(ctx context.Context) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		s, err := q.read(ctx)
		if err != nil {
			yield(Pair{}, err)
			return
		}
		for begin, end := q.lay.all("g"), after(q.lay.all("g")); ; {
			results, _, err := q.kv.Read(ctx, Range{Begin: begin, End: end, Limit: pageSize})
			if err != nil {
				yield(Pair{}, err)
				return
			}
			for _, p := range results[0].Pairs {
				begin = append(bytes.Clone(p.Key), 0)
				group, k, item, ok := q.lay.groupIn(p.Key)
				switch {
				case item && k.hint() > s.now(): // so are those behind it
					begin = after(q.lay.held(group))
				case ok && !yield(p, nil):
					return
				}
			}
			if !results[0].More {
				return
			}
		}
	}
}

// readyGrouped yields the keys of ready items of groups.
func (q *Queue) readyGrouped(ctx context.Context) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		for p, err := range q.allGrouped(ctx) {
			if _, _, item, _ := q.lay.groupIn(p.Key); (err != nil || item) && !yield(p, err) {
				return
			}
		}
	}
}

func (q *Queue) countGrouped(ctx context.Context) (n int, err error) {
	for _, err := range q.readyGrouped(ctx) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// A groupAudit is what an auditor has found of a group.
type groupAudit struct {
	held   Rev // since when; 0: it is not
	waits  bool
	marked bool
	first  *Key // ready item
	claims []ready
}

// group returns what was found of a group so far.
func (a *auditor) group(name string) *groupAudit {
	if a.groups[name] == nil {
		a.groups[name] = &groupAudit{}
	}
	return a.groups[name]
}

// readGroups reads the ready items of groups, and the markers.
func (a *auditor) readGroups(ctx context.Context) error {
	for p, err := range a.allGrouped(ctx) {
		if err != nil {
			return err
		}
		name, k, item, _ := a.lay.groupIn(p.Key)
		g := a.group(name)
		if !item {
			g.held, g.waits = p.Rev, a.lay.waits(p)
			continue
		}
		if g.first == nil {
			g.first = &k
		}
		a.item(k, "ready", p.Value)
		a.Ready, a.Grouped = a.Ready+1, a.Grouped+1
	}
	for begin, end := a.lay.all("m"), after(a.lay.all("m")); ; {
		results, _, err := a.kv.Read(ctx, Range{Begin: begin, End: end, Limit: pageSize, KeysOnly: true})
		if err != nil {
			return err
		}
		for _, p := range results[0].Pairs {
			begin = append(bytes.Clone(p.Key), 0)
			name, ok := a.lay.markedIn(p.Key)
			if ok && a.groups[name] != nil { // else it is empty, and a look deletes the marker
				a.groups[name].marked = true
			}
		}
		if !results[0].More {
			return nil
		}
	}
}

// judgeGroups looks whether each group can go on. Each fault names what is different when the group goes on meanwhile.
func (a *auditor) judgeGroups() {
	a.Groups = len(a.groups)
	for name, g := range a.groups {
		name = unescape(name)
		switch {
		case len(g.claims) > 1:
			one, two := g.claims[0].key, g.claims[1].key
			a.fault("of the group %q several items are claimed at once: %v and %v", name, one, two)
		case len(g.claims) == 1 && g.held == 0:
			c := g.claims[0]
			a.fault("%v of the group %q is claimed since %d, and the group is not held: another may be claimed, too",
				c.key, name, c.rev)
		case len(g.claims) == 0 && g.held != 0:
			a.fault("the group %q is held since %d, and no item of it is claimed: nobody lets it go on", name, g.held)
		case g.first != nil && !g.marked && !g.waits:
			a.fault("the group %q, held since %d, has ready items from %v on, and no marker: nobody finds them", name, g.held, *g.first)
		}
	}
}
