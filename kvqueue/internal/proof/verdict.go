package proof

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ambit-go/ambit/kvqueue"
)

// This file says what an auditor has found when all is over.

// Order looks whether C3 holds of the first claims: what was there when another item's enqueue
// began is claimed no later than that item, if both are of one group, or of none.
func (a *Auditor) Order() {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []*biography
	for _, b := range a.items {
		if b.claimed != 0 && !b.blurred {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(x, y *biography) int { return int(x.claimed - y.claimed) })
	for i, early := range all {
		for _, late := range all[i+1:] {
			if late.group == early.group && late.claimed > early.claimed && uint64(late.put) <= early.hint {
				a.fault("C3: %q was there at %d, before %q began (%d), but was claimed at %d, after %d", late.value, late.put, early.value, early.hint, late.claimed, early.claimed)
			}
		}
	}
}

// Compare looks whether what was played is what a store has.
func (a *Auditor) Compare(ctx context.Context, kv kvqueue.KV) error {
	results, rev, err := kv.Read(ctx, kvqueue.Range{Begin: []byte(a.root), End: []byte(a.root + "\xff"), KeysOnly: true})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	there := 0
	for _, p := range results[0].Pairs {
		kind, key := p.Key[len(a.root)], p.Key[max(len(p.Key)-20, 0):]
		_, ofGroup, _ := bytes.Cut(p.Key[min(len(a.root)+2, len(p.Key)):], []byte("/"))
		if strings.IndexByte("qxw", kind) >= 0 || kind == 'g' && len(ofGroup) > 0 {
			if there++; a.places[string(key)] == nil {
				a.fault("at %d there is %q, which nothing has shown", rev, p.Key)
			}
		}
	}
	if there != len(a.places) {
		a.fault("at %d %d items are there, and %d were shown", rev, there, len(a.places))
	}
	return nil
}

// Values returns how often each value was put, and how often it went.
func (a *Auditor) Values() (put, gone map[string]int) {
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

// Left returns how many items are there.
func (a *Auditor) Left() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.payloads)
}

// Blinked reports whether some transactions were not seen, as their store had forgotten them.
func (a *Auditor) Blinked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.blinked
}

// Faults returns what should not have been.
func (a *Auditor) Faults() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.faults)
}

// Report has a test fail if there were faults.
func (a *Auditor) Report(t testing.TB) {
	t.Helper()
	if faults := a.Faults(); len(faults) > 0 {
		t.Errorf("the audit of %q:\n%s", a.root, strings.Join(faults, "\n"))
	}
}

// Audit looks once at all that there is, for a test of a single state.
func Audit(t testing.TB, kv kvqueue.KV, name string) {
	t.Helper()
	a := NewAuditor(name)
	if err := a.sync(t.Context(), kv); err != nil {
		t.Fatal(err)
	}
	a.Report(t)
}
