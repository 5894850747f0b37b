package kvqueue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// A step is one operation of a history.
type step struct {
	what  string // enqueue, claim or ack
	value string // of claim it is the answer
}

// fifo is a queue as it ought to be. Its state is the values that are ready, in order, and
// those that are claimed, sorted.
var fifo = porcupine.Model{
	Init: func() any { return [2]string{} },
	Step: func(state, input, output any) (bool, any) {
		s, in := state.([2]string), input.(step)
		switch v := in.value + " "; in.what {
		case "enqueue":
			return true, [2]string{s[0] + v, s[1]}
		case "claim":
			if v = output.(string) + " "; !strings.HasPrefix(s[0], v) {
				return false, s
			}
			claimed := append(strings.Fields(s[1]), output.(string))
			slices.Sort(claimed)
			return true, [2]string{s[0][len(v):], strings.Join(claimed, " ")}
		default:
			claimed := strings.Fields(s[1])
			i := slices.Index(claimed, in.value)
			if i < 0 {
				return false, s
			}
			return true, [2]string{s[0], strings.Join(slices.Delete(claimed, i, i+1), " ")}
		}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %v", input, output) },
}

// A history is what several clients have done.
type history struct {
	clock atomic.Int64
	mu    sync.Mutex
	steps []porcupine.Operation
}

func (h *history) add(client int, begin int64, in step, out string, end int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.steps = append(h.steps, porcupine.Operation{ClientId: client, Input: in, Call: begin, Output: out, Return: end})
}

// There is an order of all enqueues, claims and acknowledgements, each between its call and
// its return, in which the queue is one. Transactions are refused, and the answers of
// those that add or acknowledge are lost; an enqueue whose caller has gone may be done at any
// later time.
func TestHistoriesAreLinearizable(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := &history{}
			synctest.Test(t, func(t *testing.T) { h.record(t, seed) })
			h.check(t)
		})
	}
}

// record has producers and consumers work at random.
func (h *history) record(t *testing.T, seed uint64) {
	const producers, each, consumers = 4, 5, 4
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 3))
	dice := func(n int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(n) }
	kv := newStore(t, memkv.Faults(func(_ []kvqueue.Guard, w []kvqueue.Write) memkv.Fault {
		touches := func(kind string) bool {
			return slices.ContainsFunc(w, func(w kvqueue.Write) bool { return bytes.Contains(w.Key, []byte(kind)) })
		}
		switch {
		case !touches("/w/") && !touches("/d/") || dice(4) > 0: // that of a session or a request says that the session has ended
			return memkv.None
		case !touches("/d/"), claimsOf(w) > 0: // a claim whose answer was lost is held by nobody for a while
			return memkv.Conflict
		}
		return []memkv.Fault{memkv.Conflict, memkv.Dropped, memkv.Unanswered, memkv.Late}[dice(4)]
	}))
	var handles []*kvqueue.Queue
	for range 3 {
		net := newCut(kv)
		net.delay = func() time.Duration { return time.Duration(dice(int(3 * time.Millisecond))) }
		handles = append(handles, open(t, net, "q"))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var consuming, producing sync.WaitGroup
	seen := map[string]bool{}
	for c := range consumers {
		consuming.Go(func() {
			q := handles[c%3]
			for ctx.Err() == nil {
				begin := h.clock.Add(1)
				_ = q.Do(ctx, 1, func(ctx context.Context, items []kvqueue.Item) error {
					v := string(items[0].Value)
					h.add(c, begin, step{what: "claim"}, v, h.clock.Add(1))
					mu.Lock()
					seen[v] = true
					mu.Unlock()
					time.Sleep(time.Duration(dice(int(20 * time.Millisecond))))
					begin := h.clock.Add(1)
					err := q.Ack(ctx, items...)
					assert.NoError(t, err)
					h.add(c, begin, step{"ack", v}, "", h.clock.Add(1))
					return nil
				})
			}
		})
	}
	type doubt struct {
		client int
		begin  int64
		value  string
	}
	var doubts []doubt
	for p := range producers {
		producing.Go(func() {
			for i := range each {
				v, begin := fmt.Sprintf("%d.%d", p, i), h.clock.Add(1)
				ctx, cancel := t.Context(), func() {}
				if dice(5) == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(dice(int(10*time.Millisecond))))
				}
				_, err := handles[p%3].Enqueue(ctx, []byte(v))
				cancel()
				switch {
				case err == nil:
					h.add(consumers+p, begin, step{"enqueue", v}, "", h.clock.Add(1))
				case errors.Is(err, kvqueue.ErrUnknown):
					mu.Lock()
					doubts = append(doubts, doubt{consumers + producers + len(doubts), begin, v})
					mu.Unlock()
				}
				time.Sleep(time.Duration(dice(int(30 * time.Millisecond))))
			}
		})
	}
	producing.Wait()
	time.Sleep(time.Minute)
	n, err := handles[0].Len(t.Context())
	assert.NoError(t, err)
	assert.Equal(t, kvqueue.Length{}, n)
	stop()
	consuming.Wait()
	for _, d := range doubts {
		if seen[d.value] { // else it was not done
			h.add(d.client, d.begin, step{"enqueue", d.value}, "", math.MaxInt64/2)
		}
	}
}

// check looks for an order. One that is not found within ten seconds is not missed.
func (h *history) check(t *testing.T) {
	t.Helper()
	if porcupine.CheckOperationsTimeout(fifo, h.steps, 10*time.Second) == porcupine.Illegal {
		slices.SortFunc(h.steps, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		var b strings.Builder
		for _, o := range h.steps {
			fmt.Fprintf(&b, "%d: %d-%d %+v -> %v\n", o.ClientId, o.Call, o.Return, o.Input, o.Output)
		}
		t.Errorf("no order of these steps explains the answers:\n%s", b.String())
	}
}
