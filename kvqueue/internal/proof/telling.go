package proof

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// This file puts the entries of a history together.

// never is the end of a step that may be done at any later time.
const never = math.MaxInt64 / 2

// A telling is what the entries say, put together.
type telling struct {
	asked  map[int64]*asked // by ID, as what was sent
	claims []*claimed
	sent   map[int64]*sent
	owners map[string]string // of sessions: the handle
	latest map[string]string // of a handle: its last session
	over   map[string]int64  // handles: when they were closed
	lapsed map[fenced]int64  // when the context of a claim has ended
	keys   map[string]string // of values
	told   []*asked          // calls for values with ids that were told a key
	faults []string
	last   int64 // when nothing was left, for the last time; 0: never
}

// A fenced is one claim of an item.
type fenced struct {
	key   string
	fence int64
}

// asked is what a client has asked for.
type asked struct {
	Entry
	end int64  // never: it is not known whether it was done
	key string // of a repeat: that of the item that has the id
}

// claimed is a claim, which a client was handed or not.
type claimed struct {
	Entry      // of a hidden one it has the key alone, and the fence if it is known
	begin, end int64
	session    string // empty: not known
	hidden     bool
	number     byte
}

// sent is a transaction that claims items.
type sent struct {
	Entry
	rev, end int64 // 0, never: not known
}

// steps are those of the history, the names of all items, and what nothing could explain.
func (h *History) steps() (all []porcupine.Operation, items []named, faults []string) {
	t := &telling{asked: map[int64]*asked{}, sent: map[int64]*sent{}, owners: map[string]string{}, latest: map[string]string{},
		over: map[string]int64{}, lapsed: map[fenced]int64{}, keys: map[string]string{}}
	h.mu.Lock()
	for _, e := range h.entries {
		t.take(e)
	}
	h.mu.Unlock()
	t.repeats()
	t.order()
	t.match()
	o := operations{telling: t, h: h, items: t.number()}
	all = o.make()
	items = make([]named, len(o.items))
	for key, i := range o.items {
		items[i] = named{groupOf(o.values[key]), idOf(o.values[key])}
	}
	return all, items, t.faults
}

func (t *telling) fault(format string, args ...any) {
	t.faults = append(t.faults, fmt.Sprintf(format, args...))
}

// take takes in an entry.
func (t *telling) take(e Entry) {
	switch e.Kind {
	case Began:
		t.asked[e.ID] = &asked{Entry: e, end: never}
		t.knows(e.Value, e.Key)
	case Ended:
		a := t.asked[e.ID]
		a.end = e.At
		switch {
		case a.What == Empty:
			t.last = max(t.last, a.ID)
		case a.What == Enqueue && idOf(a.Value) != "":
			a.key, t.told = e.Key, append(t.told, a)
		default:
			t.knows(a.Value, e.Key)
		}
	case Void:
		delete(t.asked, e.ID)
	case Claimed:
		t.claims = append(t.claims, &claimed{Entry: e, begin: e.ID, end: e.At})
		t.knows(e.Value, e.Key)
	case Lapsed:
		t.lapsed[fenced{e.Key, e.Fence}] = e.At
	case Sent:
		t.sent[e.ID] = &sent{Entry: e, end: never}
	case Answered:
		s := t.sent[e.ID]
		s.rev, s.end = e.Fence, e.At
	case Undone:
		delete(t.sent, e.ID)
	case Begun:
		t.owners[e.Session], t.latest[e.Who] = e.Who, e.Session
	case Over:
		t.over[e.Who] = e.At
	}
}

// knows takes in the key of a value, which may be unknown.
func (t *telling) knows(value, key string) {
	switch before := t.keys[value]; {
	case key == "" || before == key:
	case before == "":
		t.keys[value] = key
	default:
		t.fault("%q is at two places: %s and %s", value, before, key)
	}
}

// repeats looks which calls for ids were told the key of an item that another has added. An item that was never
// claimed is that of the first call that was told its key.
func (t *telling) repeats() {
	values := map[string]string{}
	for value, key := range t.keys {
		values[key] = value
	}
	for _, a := range t.told {
		switch value, there := values[a.key]; {
		case !there:
			values[a.key] = a.Value
			t.knows(a.Value, a.key)
		case value == a.Value:
		case idOf(value) != idOf(a.Value):
			t.fault("the call for %q was told the key of %q", a.Value, value)
		default:
			a.What = repeat
		}
	}
}

// order looks whether the places of items are in the order in which they were added: what was added
// before another's enqueue began is before it.
func (t *telling) order() {
	var all []*asked
	for _, a := range t.asked {
		if a.What == Enqueue && t.keys[a.Value] != "" {
			all = append(all, a)
		}
	}
	for _, a := range all {
		for _, b := range all {
			if a.end < b.ID && t.keys[a.Value] >= t.keys[b.Value] {
				t.fault("%q was added before %q, and is not before it", a.Value, b.Value)
			}
		}
	}
}

// match finds the transactions of the claims that clients were handed. The claims that remain
// nobody was handed.
func (t *telling) match() {
	known := map[fenced]*claimed{}
	for _, s := range t.sent {
		for _, c := range s.Claims {
			hidden := &claimed{Entry: Entry{Key: c.Key, Fence: s.rev, Who: s.Who}, begin: s.At, end: s.end, session: c.Session, hidden: true}
			if s.rev > 0 {
				known[fenced{c.Key, s.rev}] = hidden
			} else {
				t.claims = append(t.claims, hidden)
			}
		}
	}
	for _, c := range t.claims {
		p := fenced{c.Key, c.Fence}
		if s := known[p]; s != nil && !c.hidden {
			c.begin, c.session = s.begin, s.session
			delete(known, p)
			continue
		}
		if c.begin == 0 && !c.hidden {
			c.begin = t.unsure(c.Key)
		}
	}
	for _, c := range known {
		t.claims = append(t.claims, c)
	}
}

// unsure is when a claim of an item begins whose transaction was not answered.
func (t *telling) unsure(key string) int64 {
	begin := int64(never)
	for _, s := range t.sent {
		if s.rev == 0 && slices.ContainsFunc(s.Claims, func(c Sight) bool { return c.Key == key }) {
			begin = min(begin, s.At)
		}
	}
	if begin == never {
		t.fault("no transaction has claimed %s", key)
	}
	return begin
}

// number gives the claims of each item their numbers, in the order of their fences, and returns
// the places of all items, in order.
func (t *telling) number() map[string]int {
	slices.SortFunc(t.claims, func(a, b *claimed) int {
		if (a.Fence == 0) != (b.Fence == 0) { // those that are not known are the last
			return cmp.Compare(b.Fence, a.Fence)
		}
		return cmp.Or(cmp.Compare(a.Fence, b.Fence), cmp.Compare(a.begin, b.begin))
	})
	count := map[string]byte{}
	for _, c := range t.claims {
		count[c.Key]++
		c.number = count[c.Key]
	}
	items := map[string]int{}
	for i, key := range slices.Sorted(maps.Values(t.keys)) {
		items[key] = i
	}
	return items
}
