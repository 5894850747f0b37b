package kvqueue_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ambit-go/ambit/kvqueue"
)

// An auditor reads the raw keys of a queue, and remembers what became of each item.
type auditor struct {
	t    *testing.T
	kv   kvqueue.KV
	root string

	mu     sync.Mutex
	faults []string
	items  map[string]*biography // by key
	last   kvqueue.Rev           // the last revision that was read
}

// A biography is what the store has shown of one item.
type biography struct {
	value   string
	put     kvqueue.Rev // of its payload
	hint    uint64
	claimed kvqueue.Rev // its first claim
	fence   kvqueue.Rev // its last
	gone    kvqueue.Rev // when its payload was deleted
}

func newAuditor(t *testing.T, kv kvqueue.KV, name string) *auditor {
	return &auditor{t: t, kv: kv, root: "kvq/" + name + "/", items: map[string]*biography{}}
}

func (a *auditor) fault(format string, args ...any) {
	if len(a.faults) < 20 {
		a.faults = append(a.faults, fmt.Sprintf(format, args...))
	}
}

// look reads everything at one revision, and looks whether C1 and C7 hold.
func (a *auditor) look() {
	a.mu.Lock()
	defer a.mu.Unlock()
	results, rev, err := a.kv.Read(context.Background(), kvqueue.Range{Begin: []byte(a.root), End: []byte(a.root + "\xff")})
	if err != nil {
		a.fault("read: %v", err)
		return
	}
	if rev == a.last {
		return
	}
	a.last = rev
	states := map[string][]string{}
	floor := uint64(0)
	payloads := map[string]bool{}
	for _, p := range results[0].Pairs {
		kind := string(p.Key[len(a.root)])
		key := ""
		if len(p.Key) >= len(a.root)+22 {
			key = string(p.Key[len(p.Key)-20:])
		}
		switch kind {
		case "h":
			floor = binary.BigEndian.Uint64(p.Value)
		case "d":
			payloads[key] = true
			if a.items[key] == nil {
				a.items[key] = &biography{value: string(p.Value), put: p.Rev, hint: binary.BigEndian.Uint64([]byte(key))}
			} else if a.items[key].gone != 0 {
				a.fault("%q at %x was gone at %d and is there again at %d", p.Value, key, a.items[key].gone, rev)
			}
		case "q", "x":
			states[key] = append(states[key], kind)
		case "w":
			states[key] = append(states[key], kind)
		}
	}
	for key, in := range states {
		if len(in) != 1 {
			a.fault("C1: at %d %x is in %v", rev, key, in)
		}
		if !payloads[key] {
			a.fault("C1: at %d %x is in %v and has no payload", rev, key, in)
		}
		if hint := binary.BigEndian.Uint64([]byte(key)); in[0] == "q" && hint < floor {
			a.fault("C7: at %d %x is below the floor %d", rev, key, floor)
		}
	}
	for key := range payloads {
		if states[key] == nil {
			a.fault("C1: at %d %x (%q) has a payload and no state", rev, key, a.items[key].value)
		}
	}
	for key, b := range a.items {
		if b.gone == 0 && !payloads[key] {
			b.gone = rev
		}
	}
}

// follow takes in all claims, also those that no look sees, until ctx ends.
func (a *auditor) follow(ctx context.Context) {
	for e, err := range a.kv.Watch(ctx, 1, []byte(a.root+"w/"), []byte(a.root+"d/")) {
		a.mu.Lock()
		key := string(e.Key[max(0, len(e.Key)-20):])
		switch {
		case err != nil:
			a.fault("watch: %v", err)
		case e.Deleted:
		case e.Key[len(a.root)] == 'd' && a.items[key] == nil:
			a.items[key] = &biography{value: string(e.Value), put: e.Rev, hint: binary.BigEndian.Uint64([]byte(key))}
		case e.Key[len(a.root)] == 'w':
			a.claim(key, e.Rev)
		}
		a.mu.Unlock()
	}
}

func (a *auditor) claim(key string, rev kvqueue.Rev) {
	b := a.items[key]
	if b == nil { // it was put by a transaction before
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

// order looks whether C3 holds of the first claims: what was enqueued when another
// enqueue began is claimed no later than that's items.
func (a *auditor) order() {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []*biography
	for _, b := range a.items {
		if b.claimed != 0 {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(x, y *biography) int { return int(x.claimed - y.claimed) })
	for i, early := range all {
		for _, late := range all[i+1:] {
			if late.claimed > early.claimed && uint64(late.put) <= early.hint {
				a.fault("C3: %q was there at %d, before %q began (%d), but was claimed at %d, after %d", late.value, late.put, early.value, early.hint, late.claimed, early.claimed)
			}
		}
	}
}

// values returns how often each value was put, and how often it went.
func (a *auditor) values() (put, gone map[string]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	put, gone = map[string]int{}, map[string]int{}
	for _, b := range a.items {
		put[b.value]++
		if b.gone != 0 {
			gone[b.value]++
		}
	}
	return put, gone
}

func (a *auditor) report() {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.faults) > 0 {
		a.t.Errorf("the audit of %q:\n%s", a.root, strings.Join(a.faults, "\n"))
	}
}

// An audited store has an auditor look after each transaction.
type audited struct {
	kvqueue.KV
	auditors []*auditor
}

func (s *audited) Commit(ctx context.Context, g []kvqueue.Guard, w []kvqueue.Write) (kvqueue.Rev, error) {
	rev, err := s.KV.Commit(ctx, g, w)
	for _, a := range s.auditors {
		for _, x := range w {
			if bytes.HasPrefix(x.Key, []byte(a.root)) {
				a.look()
				break
			}
		}
	}
	return rev, err
}
