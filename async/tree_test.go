package async_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// The promise of the package is that nothing outlives its scope and nothing
// that went wrong is lost. Here random trees of tasks try to break it. A tree
// is decoded from bytes, so a seed makes one, a fuzzer makes more, and a tree
// that fails can be made smaller by leaving bytes out.

// run runs the tree in a bubble of its own and returns what was wrong.
func (r *treeRun) run(t *testing.T) []string {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, check := asynctest.Root(t.Context())
		done := make(chan struct{})
		go func() { // a body that calls Goexit takes its goroutine along
			defer close(done)
			top := r.node(nil, "top")
			r.set(func() { top.started, top.ended = true, true })
			_ = r.scope(ctx, top, 4)
		}()
		<-done
		strays := false
		r.set(func() { strays = slices.ContainsFunc(r.nodes, func(n *treeNode) bool { return n.stray }) })
		if strays {
			time.Sleep(time.Hour)
		}
		if live := asynctest.Live(ctx); len(live) > 0 {
			r.fault("left at the root: %v", live)
		}
		for range 2 { // detached tasks that have failed, then what nobody else was told
			r.given(nil, check())
		}
		synctest.Wait() // for a bare goroutine that was refused
		r.check()
		time.Sleep(2 * time.Hour) // for what was planted to end
	})
	return r.wrong
}

// smaller leaves out bytes of data for as long as what is left still fails.
func smaller(t *testing.T, data []byte) []byte {
	for size := len(data) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(data); {
			try := slices.Concat(data[:i], data[i+size:])
			if len((&treeRun{data: try}).run(t)) > 0 {
				data = try
			} else {
				i += size
			}
		}
	}
	return data
}

func treeBytes(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 7))
	data := make([]byte, 20+rng.IntN(200))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return data
}

func TestNothingOutlivesItsScopeAndNoErrorIsLost(t *testing.T) {
	for seed := range uint64(2000) {
		r := &treeRun{data: treeBytes(seed)}
		if wrong := r.run(t); len(wrong) > 0 {
			least := smaller(t, r.data)
			t.Fatalf("seed %d: %v\n%vas small as it gets: %v", seed, wrong, r, least)
		}
	}
}

// TestTheTreeFindsWhatIsPlanted shows that the check can fail.
func TestTheTreeFindsWhatIsPlanted(t *testing.T) {
	found := 0
	for seed := range uint64(20) {
		found += len((&treeRun{data: treeBytes(seed), lie: true}).run(t))
	}
	if found == 0 {
		t.Error("handlers that end after their scope were not found")
	}
}

// TestTheTreeCountsWhatAListHasLeftOut: what is in no list is lost, unless a list that
// is too long counts it.
func TestTheTreeCountsWhatAListHasLeftOut(t *testing.T) {
	for name, test := range map[string]struct {
		kept, dropped int
		lost          bool
	}{
		"all are counted":     {32, 8, false},
		"one is not counted":  {32, 7, true},
		"one is in no list":   {31, 8, true},
		"there is no number":  {32, 0, true},
		"more than there are": {32, 9, false},
	} {
		r := new(treeRun)
		scope := r.node(r.node(nil, "top"), "Scope")
		list := &async.ScopeError{Dropped: test.dropped}
		for i := range 40 {
			n := r.node(scope, "Go")
			n.err = fmt.Errorf("node %d failed", n.id)
			if i < test.kept {
				list.Errors = append(list.Errors, n.err)
			}
		}
		r.given(scope, list)
		if r.lost(); len(r.wrong) > 0 != test.lost {
			t.Errorf("%s: %v", name, r.wrong)
		}
	}
}

func FuzzTree(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(treeBytes(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &treeRun{data: data[:min(len(data), 400)]}
		if wrong := r.run(t); len(wrong) > 0 {
			t.Fatalf("%v\n%v", wrong, r)
		}
	})
}
