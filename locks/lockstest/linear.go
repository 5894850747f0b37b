package lockstest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ambit-go/ambit/locks"
)

// An op is one step of a history: a request that does not wait, or a release.
type op struct {
	acquire bool
	id      string
}

// An opAnswer is what a store has answered.
type opAnswer struct {
	ok    bool
	fence int64
	slot  int
}

// held is what a semaphore ought to be: who has which slot, and the last fence.
type held struct {
	fence int64
	slots map[string]int
}

// semaphore is the model of a semaphore for requests that do not wait: one is granted if
// and only if there is room, with the smallest free slot and a greater fence than all
// before.
func semaphore(size int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return held{} },
		Step: func(state, input, output any) (bool, any) {
			s, in, out := state.(held), input.(op), output.(opAnswer)
			_, has := s.slots[in.id]
			if !in.acquire {
				if out.ok != has {
					return false, s
				}
				next := held{s.fence, maps.Clone(s.slots)}
				delete(next.slots, in.id)
				return true, next
			}
			if out.ok != (len(s.slots) < size) {
				return false, s
			}
			if !out.ok {
				return true, s
			}
			free := 0
			for taken := slices.Sorted(maps.Values(s.slots)); free < len(taken) && taken[free] == free; {
				free++
			}
			next := held{out.fence, maps.Clone(s.slots)}
			if next.slots == nil {
				next.slots = map[string]int{}
			}
			next.slots[in.id] = out.slot
			return out.fence > s.fence && out.slot == free, next
		},
		Equal: func(a, b any) bool {
			x, y := a.(held), b.(held)
			return x.fence == y.fence && maps.Equal(x.slots, y.slots)
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

// testLinearizable has goroutines on two handles take and give back permits at random,
// and looks whether there is an order of the steps, each between its call and its answer,
// in which the answers are those of the model.
func testLinearizable(t *testing.T, f *Fixture) {
	const size, workers, rounds = 2, 6, 25
	var clock atomic.Int64
	var mu sync.Mutex
	var history []porcupine.Operation
	record := func(client int, in op, call func() (opAnswer, error)) (out opAnswer, ok bool) {
		begin := clock.Add(1)
		out, err := call()
		end := clock.Add(1)
		if err != nil {
			t.Errorf("%+v: %v", in, err)
			return out, false
		}
		mu.Lock()
		defer mu.Unlock()
		history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: begin, Output: out, Return: end})
		return out, true
	}
	var wg sync.WaitGroup
	for w := range workers {
		s := f.handle(w)
		random := rand.New(rand.NewPCG(uint64(w), 7))
		wg.Go(func() {
			for range rounds {
				q := f.permit(size, noWait)
				got, ok := record(w, op{true, q.ID}, func() (opAnswer, error) {
					turn, err := s.Acquire(t.Context(), f.name("linear"), []locks.Request{q})
					if err != nil {
						return opAnswer{}, err
					}
					a := turn.Answers[0]
					return opAnswer{a.Granted, a.Grant.Fence, a.Grant.Slot}, a.Err
				})
				if !ok {
					return
				}
				if random.IntN(2) == 0 {
					time.Sleep(time.Duration(random.IntN(1000)) * time.Microsecond)
				}
				if !got.ok && random.IntN(4) > 0 {
					continue
				}
				if _, ok = record(w, op{false, q.ID}, func() (opAnswer, error) {
					released, err := s.Release(t.Context(), f.name("linear"), locks.Ref{ID: q.ID}, nil)
					return opAnswer{ok: released}, err
				}); !ok {
					return
				}
			}
		})
	}
	wg.Wait()
	if porcupine.CheckOperationsTimeout(semaphore(size), history, time.Minute) == porcupine.Illegal {
		slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		var b strings.Builder
		for _, o := range history {
			fmt.Fprintf(&b, "%d: %d-%d %+v -> %+v\n", o.ClientId, o.Call, o.Return, o.Input, o.Output)
		}
		t.Errorf("no order of these steps explains the answers:\n%s", b.String())
	}
}
