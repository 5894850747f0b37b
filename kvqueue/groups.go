package kvqueue

import (
	"bytes"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// This file is how groups stand in the store. Three kinds of keys are of a group:
//
//	g/<group>/<key>  a ready item of the group: its record
//	g/<group>/       the group is held: a claim of one of its items is out. It is before all items of the group, and has
//	                 a value if that claim waits for its [RetryDelay]
//	m/<group>        the marker: the group may have ready items
//
// A claim takes the first item of a group. It demands that nothing is in the range from g/<group>/ to before the
// item: neither a smaller item nor a claim that is out. It puts g/<group>/, and whatever ends the claim deletes
// that. So two things hold after each transaction:
//
//   - g/<group>/ is there if, and only if, one item of the group is claimed, and then no other is.
//   - A group with ready items has its marker, or waits: whoever puts an item puts the marker, too, without having looked at
//     anything. It is deleted when there is none, and while the group waits: the end of the wait puts it.
//
// An acknowledgement only deletes, so that a full etcd does it.

// mostGroup is how many bytes the key of a group has at most.
const mostGroup = 128

// leastForGroups is how many bytes a transaction of a store holds at least whose queues may have groups: those of
// the keys of all items that it claims, if all are as long as may be.
const leastForGroups = 256 << 10

// Group says that an item is of a group: the items of one group are claimed one after another, in order,
// each after the one before it was settled. Groups run beside each other, and beside items of no group.
//
//	_, err := q.Add(ctx, payment, kvqueue.Group("customer-17"))
//
// An item that goes back is claimed again before those behind it; while it waits for its [RetryDelay] its group
// does, too. A dead letter lets its group go on, and comes before the others again when it is put back. Items of
// different groups are in no order: groups take turns, and so do all groups together and the items of no group. A
// claim of several items has one of each group at most. The key has from 1 to 128 bytes, which may be any.
//
// The first item of a group makes the queue one that programs of before cannot open: they know nothing of groups. End
// those that have it open before you use groups.
func Group(key string) AddOption {
	return addOption(func(a *added) {
		if a.group = escape(key); key == "" || len(key) > mostGroup {
			a.err = invalid("Group", "the key has %d bytes, and must have from 1 to %d", len(key), mostGroup)
		}
	})
}

// unescape is the inverse of escape.
func unescape(text string) string {
	name, _ := url.PathUnescape(text)
	return name
}

// isEscaped reports whether a text is what escape makes of another.
func isEscaped(text string) bool { return text != "" && escape(unescape(text)) == text }

// waitsForDelay is the value of g/<group>/ while the claim waits for its [RetryDelay]. Then it is not acknowledged any more,
// not even late: whatever ends it puts the item somewhere, and the marker with it.
const waitsForDelay = "waits"

func (l layout) marker(group string) []byte         { return []byte(l.root + "m/" + group) }
func (l layout) held(group string) []byte           { return []byte(l.root + "g/" + group + "/") }
func (l layout) grouped(group string, k Key) []byte { return append(l.held(group), k[:]...) }

// place is where an item is ready.
func (l layout) place(k Key, group string) []byte {
	if group == "" {
		return l.ready(k)
	}
	return l.grouped(group, k)
}

// markedIn returns the group of a marker; false if this package did not write that.
func (l layout) markedIn(key []byte) (group string, ok bool) {
	text, ok := bytes.CutPrefix(key, l.all("m"))
	return string(text), ok && isEscaped(string(text))
}

// groupIn returns the group of a key that begins with g, and that of the item if there is one; false if this
// package did not write that.
func (l layout) groupIn(key []byte) (group string, k Key, item, ok bool) {
	text, ours := bytes.CutPrefix(key, l.all("g"))
	group, rest, ok := strings.Cut(string(text), "/")
	ok = ok && ours && isEscaped(group)
	if ok && len(rest) == keySize {
		return group, Key([]byte(rest)), true, true
	}
	return group, k, false, ok && rest == ""
}

// waits reports whether a key says that its group waits.
func (l layout) waits(p Pair) bool {
	_, _, item, ok := l.groupIn(p.Key)
	return ok && !item && string(p.Value) == waitsForDelay
}

// mark says that a group may have ready items.
func (t *transaction) mark(lay layout, group string) {
	if group != "" {
		t.once(Write{Key: lay.marker(group)})
	}
}

// hold claims an item of a group, which must be its first, while no other is claimed.
func (t *transaction) hold(k Key, group string) {
	lay := t.q.lay
	t.guards = append(t.guards, Guard{Key: lay.held(group), End: lay.grouped(group, k), Is: Absent})
	t.once(Write{Key: lay.held(group)})
}

// free ends the claim of an item of a group, if it is of one.
func (t *transaction) free(group string) {
	if group != "" {
		t.once(Write{Key: t.q.lay.held(group), Delete: true})
	}
}

// once adds a write, unless there is one of its key. Two ends of claims of one group may be in a batch, if one
// of the claims was settled before: then the batch is refused, and tried again without that.
func (t *transaction) once(w Write) {
	if !slices.ContainsFunc(t.writes, func(o Write) bool { return bytes.Equal(o.Key, w.Key) }) {
		t.writes = append(t.writes, w)
	}
}

// layoutWithGroups is the version of a layout with groups. A program that knows it up to 1 would leave their items
// alone, and put those of a process that has gone among the items of no group.
const layoutWithGroups = 2

func (l layout) version() Range { return Range{Begin: []byte(l.root + "v")} }

// raise has the layout be of the version with groups, if it is of one before, as was read.
func (t *transaction) raise(lay layout, stored Result) {
	guard := Guard{Key: lay.version().Begin, Is: Absent}
	if len(stored.Pairs) > 0 {
		p := stored.Pairs[0]
		if v, err := strconv.Atoi(string(p.Value)); err != nil || v >= layoutWithGroups { // Open refuses no number
			return
		}
		guard.Is, guard.Rev = Unchanged, p.Rev
	}
	t.guards = append(t.guards, guard)
	t.once(Write{Key: guard.Key, Value: strconv.AppendInt(nil, layoutWithGroups, 10)})
}

// versionFor is what is to be read of the version for a batch: if an item of it is of a group.
func (q *Queue) versionFor(batch []*request[*appending]) []Range {
	if withGroups(batch) {
		return []Range{q.lay.version()}
	}
	return nil
}

// weight is how much room of a transaction the claim of an item takes, and its end: one is a guard and two writes.
func (r record) weight() int {
	if r.group != "" {
		return 2
	}
	return 1
}

// weigh is the weight of ends of claims.
func weigh(ends []*request[settlement]) (weight int) {
	for _, r := range ends {
		weight += r.of.claim.rec.weight()
	}
	return weight
}

// fitting is how many of the ends of claims fit into so much room.
func fitting(ends []*request[settlement], room int) (n int) {
	for weight := 0; n < len(ends); n++ {
		if weight += ends[n].of.claim.rec.weight(); weight > room {
			break
		}
	}
	return n
}

func weightOf(items []Item) (weight int) {
	for _, i := range items {
		weight += record{group: i.Group}.weight()
	}
	return weight
}

// withGroups reports whether an item of a batch is of a group.
func withGroups(batch []*request[*appending]) bool {
	return slices.ContainsFunc(batch, func(r *request[*appending]) bool { return r.of.group != "" })
}

// A dead letter has its group behind its error, which is a text in UTF-8, and a byte that no such text has.
const behindWhy = 0xff

func encodeDead(r record, why string) []byte {
	more := []byte(why)
	if r.group != "" {
		more = append(append(more, behindWhy), r.group...)
	}
	return r.encode(more...)
}

func decodeDead(b []byte) (r record, why string, err error) {
	r, more, err := decodeRecord(b)
	text, group, _ := bytes.Cut(more, []byte{behindWhy})
	r.group = string(group)
	return r, string(text), err
}
