package proof

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/ambit-go/ambit/kvqueue"
)

// This file is the queue as it ought to be.

// maxFailures and maxCrashes are those of all handles of histories.
const (
	maxFailures = 3
	maxCrashes  = 4
)

// Limits are the options of all handles of histories, and more.
func Limits(more ...kvqueue.Option) []kvqueue.Option {
	return append(more, kvqueue.MaxAttempts(maxFailures), kvqueue.MaxCrashes(maxCrashes), kvqueue.RetryDelay(0, 0))
}

// A move is a step of a history, of which it is known what it was, and of which item.
type move struct {
	what    string
	value   string // for people
	item    int    // in the order of the keys
	claim   byte   // which of the claims of the item, from 1 on
	attempt byte   // of handed: what the client was told
	fenced  bool   // of handed and hidden: those of one item that are come in the order of their numbers
	sure    bool   // it was done; else it may never be
}

// Moves that no client asks for.
const (
	handed = "claim"  // a claim that a client was handed
	hidden = "hidden" // a claim that nobody was handed
	crash  = "crash"  // a claim is given back, as its session has ended
	repeat = "repeat" // a call for an id that an item has already
)

func (m move) String() string {
	text := fmt.Sprintf("%s %q", m.what, m.value)
	if m.claim > 0 {
		text += fmt.Sprintf(", claim %d", m.claim)
	}
	if m.attempt > 0 {
		text += fmt.Sprintf(", attempt %d", m.attempt)
	}
	if !m.sure {
		text += ", perhaps"
	}
	return text
}

// The state of a queue is a text: each item, in the order of the keys, has these bytes of it.
const (
	place    = iota // where the item is
	failures        // runs that have failed
	crashes         // runs whose process went away
	holder          // the claim that it is in
	last            // the last claim that is fenced
	width           // how many bytes an item has
)

// Where an item is.
const (
	nowhere byte = iota // not added yet
	ready
	held
	dead
	gone
)

// A named is what is known of an item before it is added. Those of one id are never added both, for ids stand for
// longer than a history lasts.
type named struct{ group, id string }

// model is a queue of all items of a history, of which it knows the names. Claims take the first of no group that
// is ready, or the first of a group of which none is claimed; an item that is given back is at its old place.
func model(items []named) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return "" },
		Step: func(state, input, _ any) (bool, any) {
			return step(state.(string), input.(move), items)
		},
		DescribeOperation: func(input, _ any) string { return input.(move).String() },
	}
}

// step is what becomes of a queue by a move, and whether that may be.
func step(state string, m move, items []named) (bool, any) {
	if m.what == Empty {
		return isEmpty(state), state
	}
	next := make([]byte, max(len(state), (m.item+1)*width))
	copy(next, state)
	i := next[m.item*width : (m.item+1)*width]
	var ok bool
	switch m.what {
	case Enqueue:
		ok = i[place] == nowhere && !stands(next, items, items[m.item].id)
		i[place] = ready
	case repeat:
		ok = i[place] != nowhere
	case handed, hidden:
		if ok = isFirst(next, m.item, items) && m.fits(i); ok {
			i[place], i[holder] = held, m.claim
			if m.fenced {
				i[last] = m.claim
			}
		}
	case Requeue:
		if ok = i[place] == dead; ok {
			i[place], i[failures], i[crashes] = ready, 0, 0
		}
	default:
		if ok = i[place] == held && i[holder] == m.claim; ok {
			settle(i, m.what)
		}
	}
	switch {
	case ok:
		return true, string(next)
	case !m.sure && m.past(i):
		return true, state
	}
	return false, state
}

// isFirst reports whether an item is ready, and of its group none before it is, and none is claimed; or, if it is
// of no group, none before it is that is of none.
func isFirst(state []byte, item int, items []named) bool {
	group := items[item].group
	for i := range len(state) / width {
		is := state[i*width+place]
		if items[i].group == group && (i < item && is == ready || is == held && group != "") {
			return false
		}
	}
	return state[item*width+place] == ready
}

// stands reports whether an item with an id was added.
func stands(state []byte, items []named, id string) bool {
	for i := range len(state) / width {
		if id != "" && items[i].id == id && state[i*width+place] != nowhere {
			return true
		}
	}
	return false
}

func isEmpty(state string) bool {
	for i := 0; i < len(state); i += width {
		if p := state[i+place]; p != nowhere && p != gone {
			return false
		}
	}
	return true
}

// fits reports whether a claim comes when it should, and says the right attempt.
func (m move) fits(i []byte) bool {
	return (!m.fenced || m.claim > i[last]) && (m.attempt == 0 || m.attempt == i[failures]+i[crashes]+1)
}

// settle ends a claim.
func settle(i []byte, how string) {
	i[place] = ready
	switch how {
	case Ack:
		i[place] = gone
	case Fail:
		if i[failures]++; int(i[failures]) >= maxFailures {
			i[place] = dead
		}
	case crash:
		if i[crashes]++; int(i[crashes]) >= maxCrashes {
			i[place] = dead
		}
	}
}

// past reports whether a move that is not sure can come to nothing any more: not before its
// claim, and not as long as it still may be done.
func (m move) past(i []byte) bool {
	if m.what == hidden || m.what == Requeue || !m.fenced {
		return i[place] == gone
	}
	return i[last] >= m.claim
}
