package proof

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
)

// An Auditor follows the raw keys of one queue. It plays each transaction again, looks after
// each of them whether the invariants hold, and remembers what became of each item.
type Auditor struct {
	root string

	mu      sync.Mutex
	changed chan struct{} // closed, and made anew, when reached grows
	reached kvqueue.Rev   // all transactions up to this one were played
	pending []kvqueue.Event
	synced  bool // what was played is what the store has
	blinked bool // some transactions were not seen

	faults   []string
	items    map[string]*biography      // by key
	places   map[string]map[string]bool // by key: where the item is: q, g, x, or w and the session
	payloads map[string]bool
	sessions map[string]map[string]bool // by session: which of l and s there are
	requests map[string]string          // by key: the session
	groups   *groups
	floor    uint64
}

// A biography is what the store has shown of one item.
type biography struct {
	value   string
	group   string
	put     kvqueue.Rev // of its payload
	hint    uint64
	claimed kvqueue.Rev // its first claim
	fence   kvqueue.Rev // its last
	gone    kvqueue.Rev // when its payload was deleted
	blurred bool        // it was not watched all the time: its first claim is not known
}

// NewAuditor returns an auditor of the queue of a name, with the usual prefix.
func NewAuditor(name string) *Auditor {
	return &Auditor{root: "kvq/" + name + "/", changed: make(chan struct{}), items: map[string]*biography{}, places: map[string]map[string]bool{},
		payloads: map[string]bool{}, sessions: map[string]map[string]bool{}, requests: map[string]string{}, groups: newGroups()}
}

func (a *Auditor) fault(format string, args ...any) {
	if len(a.faults) < 20 {
		a.faults = append(a.faults, fmt.Sprintf(format, args...))
	}
}

// An Opener opens a store, and says how it is closed.
type Opener func(ctx context.Context) (kv kvqueue.KV, shut func(), err error)

// Always is the opener of a store that stays open.
func Always(kv kvqueue.KV) Opener {
	return func(context.Context) (kvqueue.KV, func(), error) { return kv, func() {}, nil }
}

// Follow plays what happens in a store until ctx ends. When the store fails it is opened
// again; what is not known then is read.
func (a *Auditor) Follow(ctx context.Context, open Opener) {
	for ctx.Err() == nil {
		kv, shut, err := open(ctx)
		for err == nil && ctx.Err() == nil {
			err = a.follow(ctx, kv)
		}
		if shut != nil {
			shut()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (a *Auditor) follow(ctx context.Context, kv kvqueue.KV) error {
	if err := a.sync(ctx, kv); err != nil {
		return err
	}
	a.mu.Lock()
	from := a.reached
	if len(a.pending) > 0 {
		from = a.pending[0].Rev - 1 // the rest of the transaction may have been missed
		a.pending = nil
	}
	a.mu.Unlock()
	for e, err := range kv.Watch(ctx, from, []byte(a.root)) {
		if errors.Is(err, kvqueue.ErrCompacted) {
			a.mu.Lock()
			a.synced = false
			a.mu.Unlock()
			return nil
		}
		if err != nil {
			return err
		}
		a.see(e)
	}
	return nil
}

// sync reads all that there is, if what was played is not that.
func (a *Auditor) sync(ctx context.Context, kv kvqueue.KV) error {
	a.mu.Lock()
	synced := a.synced
	a.mu.Unlock()
	if synced {
		return nil
	}
	results, rev, err := kv.Read(ctx, kvqueue.Range{Begin: []byte(a.root), End: []byte(a.root + "\xff")})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	first := a.reached == 0
	known := map[string]bool{} // whose first claim was seen
	for key, b := range a.items {
		known[key] = b.claimed != 0
	}
	clear(a.places)
	clear(a.payloads)
	clear(a.sessions)
	clear(a.requests)
	a.groups = newGroups()
	events := make([]kvqueue.Event, len(results[0].Pairs))
	for i, p := range results[0].Pairs {
		events[i] = kvqueue.Event{Pair: p}
	}
	a.pending, a.synced = nil, true
	a.play(rev, events)
	for key, b := range a.items {
		if b.blurred = b.blurred || !known[key]; b.gone == 0 && !a.payloads[key] {
			b.gone = rev
		}
	}
	a.blinked = a.blinked || !first || len(a.items) > 0
	a.reach(rev)
	return nil
}

// see takes in one change. A transaction is played when it is there as a whole.
func (a *Auditor) see(e kvqueue.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.pending) > 0 && a.pending[0].Rev != e.Rev {
		a.play(a.pending[0].Rev, a.pending)
		a.pending = nil
	}
	a.pending = append(a.pending, e)
	a.reach(e.Rev - 1)
}

func (a *Auditor) reach(rev kvqueue.Rev) {
	if rev > a.reached {
		a.reached = rev
		close(a.changed)
		a.changed = make(chan struct{})
	}
}

// Settle waits until all that has happened in a store was played: it writes a key that no
// queue looks at, and waits until that is shown.
func (a *Auditor) Settle(ctx context.Context, kv kvqueue.KV) error {
	rev, err := kv.Commit(ctx, nil, []kvqueue.Write{{Key: []byte(a.root + "z")}})
	if err != nil {
		return err
	}
	return a.until(ctx, func() bool { return a.reached >= rev-1 })
}

// until waits until something holds, which changes with what was reached.
func (a *Auditor) until(ctx context.Context, so func() bool) error {
	for {
		a.mu.Lock()
		is, changed := so(), a.changed
		a.mu.Unlock()
		if is {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// play does one transaction, and looks at what it has touched.
func (a *Auditor) play(rev kvqueue.Rev, events []kvqueue.Event) {
	slices.SortStableFunc(events, func(x, y kvqueue.Event) int { return bytes.Compare(x.Key, y.Key) }) // payloads before claims
	touched := map[string]bool{}
	all := false
	for _, e := range events {
		kind, rest := e.Key[len(a.root)], string(e.Key[min(len(a.root)+2, len(e.Key)):])
		switch kind {
		case 'h':
			if !e.Deleted {
				a.floor, all = binary.BigEndian.Uint64(e.Value), true
			}
		case 'd', 'q', 'x', 'w':
			key := rest[len(rest)-20:]
			touched[key] = true
			if a.item(kind, key, rest, e); kind == 'w' {
				a.groups.claim(rest, e, rev)
			}
		case 'g':
			name, key := a.groups.grouped(rest, e.Value, e.Deleted)
			if key != "" {
				touched[key] = true
				a.item(kind, key, rest, e)
				if b := a.items[key]; b != nil {
					b.group = name
				}
			}
		case 'm':
			a.groups.group(rest).marked = !e.Deleted
		case 'l', 's':
			a.session(rest, kind, e.Deleted)
			all = all || e.Deleted
		case 'r':
			if a.requests[rest] = rest; e.Deleted {
				delete(a.requests, rest)
			}
		}
	}
	if all {
		for key := range a.places {
			touched[key] = true
		}
	}
	for key := range touched {
		a.look(rev, key)
	}
	a.groups.look(rev, a.fault)
	for key, id := range a.requests {
		if !a.sessions[id]["l"] {
			a.fault("C5: at %d the request %x stands, and its session %s has ended", rev, key, id)
		}
	}
}

func (a *Auditor) session(id string, kind byte, deleted bool) {
	if a.sessions[id] == nil {
		a.sessions[id] = map[string]bool{}
	}
	a.sessions[id][string(kind)] = !deleted
}

// item takes in a change of one of the keys of an item.
func (a *Auditor) item(kind byte, key, rest string, e kvqueue.Event) {
	if kind == 'd' {
		a.payload(key, e)
		return
	}
	place := string(kind)
	if kind == 'w' {
		place += " " + rest[:16]
	}
	if a.places[key] == nil {
		a.places[key] = map[string]bool{}
	}
	if e.Deleted {
		delete(a.places[key], place)
		return
	}
	a.places[key][place] = true
	if kind == 'w' {
		a.claim(key, e.Rev)
	}
}

func (a *Auditor) payload(key string, e kvqueue.Event) {
	b := a.items[key]
	switch {
	case e.Deleted:
		delete(a.payloads, key)
		if b != nil {
			b.gone = e.Rev
		}
		return
	case b == nil:
		a.items[key] = &biography{value: string(e.Value), put: e.Rev, hint: binary.BigEndian.Uint64([]byte(key))}
	case b.gone != 0 || b.put != e.Rev:
		a.fault("C2: %q at %x was put at %d, went at %d, and is put again at %d", b.value, key, b.put, b.gone, e.Rev)
	}
	a.payloads[key] = true
}

func (a *Auditor) claim(key string, rev kvqueue.Rev) {
	b := a.items[key]
	if b == nil {
		a.fault("C1: %x is claimed and was never there", key)
		return
	}
	if rev < b.fence {
		a.fault("the fence of %q went from %d to %d", b.value, b.fence, rev)
	}
	b.fence = rev
	if b.claimed == 0 {
		b.claimed = rev
	}
}

// look looks whether C1 and C7 hold of one item.
func (a *Auditor) look(rev kvqueue.Rev, key string) {
	in := a.places[key]
	switch {
	case len(in) == 0:
		if delete(a.places, key); a.payloads[key] {
			a.fault("C1: at %d %x (%q) has a payload and no state", rev, key, a.items[key].value)
		}
		return
	case len(in) > 1:
		a.fault("C1: at %d %x is in %v", rev, key, in)
	}
	if !a.payloads[key] {
		a.fault("C1: at %d %x is in %v and has no payload", rev, key, in)
	}
	if hint := binary.BigEndian.Uint64([]byte(key)); in["q"] && hint < a.floor {
		a.fault("C7: at %d %x is below the floor %d", rev, key, a.floor)
	}
	for place := range in {
		if id, claimed := strings.CutPrefix(place, "w "); claimed && !a.sessions[id]["l"] && !a.sessions[id]["s"] {
			a.fault("C5: at %d %x is claimed by the session %s, of which nothing is known: nobody gives it back", rev, key, id)
		}
	}
}
