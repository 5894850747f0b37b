package proof

import (
	"encoding/binary"
	"strings"

	"github.com/ambit-go/ambit/kvqueue"
)

// This file plays the keys of groups: of each of them one item is claimed at a time, the first, and a group that
// can go on is found.

// A group is what the store has shown of one.
type group struct {
	ready  map[string]bool // by the key of the item
	claims map[string]bool // by session and key
	held   bool
	waits  bool // the claim that is out waits for its delay
	marked bool
}

// groups are all of a queue.
type groups struct {
	of      map[string]*group
	claimed map[string]string // by session and key of a claim: its group
	touched map[string]bool   // by the transaction that is being played
	fresh   map[string]string // claims of that: the group
}

func newGroups() *groups {
	return &groups{map[string]*group{}, map[string]string{}, map[string]bool{}, map[string]string{}}
}

func (g *groups) group(name string) *group {
	g.touched[name] = true
	if g.of[name] == nil {
		g.of[name] = &group{ready: map[string]bool{}, claims: map[string]bool{}}
	}
	return g.of[name]
}

func set(in map[string]bool, key string, is bool) {
	if is {
		in[key] = true
	} else {
		delete(in, key)
	}
}

// grouped takes in a change of a key that begins with g, and returns the item if there is one.
func (g *groups) grouped(rest string, value []byte, deleted bool) (name, key string) {
	name, key, _ = strings.Cut(rest, "/")
	if of := g.group(name); key == "" {
		of.held, of.waits = !deleted, !deleted && len(value) > 0
	} else {
		set(of.ready, key, !deleted)
	}
	return name, key
}

// claim takes in a change of a claim. The group stands behind the four numbers of its value, and before the time
// when the item was added, which has seven bytes.
func (g *groups) claim(rest string, e kvqueue.Event, rev kvqueue.Rev) {
	if e.Deleted {
		if name := g.claimed[rest]; name != "" {
			set(g.group(name).claims, rest, false)
			delete(g.claimed, rest)
		}
		return
	}
	b := e.Value
	if n := len(b) - 7; n > 0 && b[len(b)-1] == 0xff {
		b = b[:n]
	}
	for range 4 {
		_, n := binary.Uvarint(b)
		b = b[max(n, 0):]
	}
	if name := string(b); name != "" {
		set(g.group(name).claims, rest, true)
		if g.claimed[rest] = name; e.Rev == rev {
			g.fresh[rest] = name
		}
	}
}

// look looks at the groups that a transaction has touched.
func (g *groups) look(rev kvqueue.Rev, fault func(format string, args ...any)) {
	for claim, name := range g.fresh {
		for key := range g.of[name].ready {
			if key < claim[17:] {
				fault("G2: at %d %x of the group %s is claimed, before %x, which is ready", rev, claim[17:], name, key)
			}
		}
	}
	for name := range g.touched {
		switch of := g.of[name]; {
		case len(of.claims) > 1:
			fault("G1: at %d several items of the group %s are claimed: %x", rev, name, of.claims)
		case of.held != (len(of.claims) == 1):
			fault("G1: at %d the group %s is held: %v, with %d claims", rev, name, of.held, len(of.claims))
		case len(of.ready) > 0 && !of.marked && !of.waits:
			fault("G3: at %d the group %s has ready items, and no marker: nobody finds them", rev, name)
		}
	}
	clear(g.touched)
	clear(g.fresh)
}
