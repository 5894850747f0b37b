package proof

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// A Step is one operation of a history.
type Step struct {
	What  string // enqueue, claim or ack
	Value string // of claim it is the answer
}

// fifo is a queue as it ought to be. Its state is the values that are ready, in order, and
// those that are claimed, sorted.
var fifo = porcupine.Model{
	Init: func() any { return [2]string{} },
	Step: func(state, input, output any) (bool, any) {
		s, in := state.([2]string), input.(Step)
		switch v := in.Value + " "; in.What {
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
			i := slices.Index(claimed, in.Value)
			if i < 0 {
				return false, s
			}
			return true, [2]string{s[0], strings.Join(slices.Delete(claimed, i, i+1), " ")}
		}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %v", input, output) },
}

// A History is what several clients have done with a queue, on a clock that all share.
type History struct {
	clock atomic.Int64
	dice  *Dice

	mu     sync.Mutex
	steps  []porcupine.Operation
	sent   map[string]int64 // by the key of an item: when a claim of it was sent first
	doubts []doubt
	seen   map[string]bool // values that were claimed
	more   chan struct{}   // closed, and made anew, with each step
}

// A doubt is an enqueue of which it is not known whether it was done.
type doubt struct {
	client int
	begin  int64
	value  string
}

// NewHistory returns an empty history.
func NewHistory(seed uint64) *History {
	return &History{dice: NewDice(seed), sent: map[string]int64{}, seen: map[string]bool{}, more: make(chan struct{})}
}

// Add adds a step that has begun and ended at these times of the clock.
func (h *History) Add(client int, begin int64, in Step, out string, end int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.steps = append(h.steps, porcupine.Operation{ClientId: client, Input: in, Call: begin, Output: out, Return: end})
	close(h.more)
	h.more = make(chan struct{})
}

// Steps waits until there are so many.
func (h *History) Steps(ctx context.Context, n int) error {
	for {
		h.mu.Lock()
		enough, more := len(h.steps) >= n, h.more
		h.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Faults are whatever can go wrong with what adds, claims and acknowledges. Those of a session
// or a request would say that the session has ended.
func (h *History) Faults(_ []kvqueue.Guard, writes []kvqueue.Write) memkv.Fault {
	ofItems := slices.ContainsFunc(writes, func(w kvqueue.Write) bool {
		return bytes.Contains(w.Key, []byte("/w/")) || bytes.Contains(w.Key, []byte("/d/"))
	})
	if !ofItems || h.dice.N(4) > 0 {
		return memkv.None
	}
	return []memkv.Fault{memkv.Conflict, memkv.Dropped, memkv.Unanswered, memkv.Late}[h.dice.N(4)]
}

// A noted store tells a history when claims are sent.
type noted struct {
	kvqueue.KV
	h *History

	mu  sync.Mutex
	own map[string]bool // sessions that were begun here
}

// Noted is the store of one handle, of which the history sees the claims. A claim whose answer
// was lost, and one that another has made for the handle, may be handed over late, to a caller
// that has come after it was done: its step begins when it was sent.
func (h *History) Noted(kv kvqueue.KV) kvqueue.KV {
	return &noted{KV: kv, h: h, own: map[string]bool{}}
}

func (n *noted) Session(ctx context.Context, ttl time.Duration) (kvqueue.Session, error) {
	s, err := n.KV.Session(ctx, ttl)
	if err == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.own[fmt.Sprintf("%016x", uint64(s.ID()))] = true
	}
	return s, err
}

func (n *noted) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	at := n.h.clock.Add(1)
	rev, err := n.KV.Commit(ctx, guards, writes)
	unknown := errors.Is(err, kvqueue.ErrUnknown)
	if err != nil && !unknown {
		return rev, err
	}
	for _, w := range writes {
		_, claim, is := bytes.Cut(w.Key, []byte("/w/"))
		if !is || w.Delete || len(claim) != 37 {
			continue
		}
		n.mu.Lock()
		own := n.own[string(claim[:16])]
		n.mu.Unlock()
		if unknown || !own {
			n.h.claimSent(string(claim[17:]), at)
		}
	}
	return rev, err
}

func (h *History) claimSent(key string, at int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sent[key] == 0 {
		h.sent[key] = at
	}
}

// Record has four producers and four consumers use the queue of some handles at random, and
// returns when nothing is left. Some producers do not wait for their answers: what they add
// may be added at any later time.
func (h *History) Record(t testing.TB, handles []*kvqueue.Queue, each int) {
	const producers, consumers = 4, 4
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var consuming, producing sync.WaitGroup
	defer consuming.Wait()
	for c := range consumers {
		consuming.Go(func() {
			for ctx.Err() == nil {
				h.consume(ctx, t, c, handles[c%len(handles)])
			}
		})
	}
	for p := range producers {
		producing.Go(func() {
			for i := range each {
				h.Produce(ctx, consumers+p, handles[p%len(handles)], fmt.Sprintf("%d.%d", p, i))
				h.dice.Pause(ctx, 30*time.Millisecond)
			}
		})
	}
	producing.Wait()
	for {
		n, err := handles[0].Len(ctx)
		if err == nil && n == (kvqueue.Length{}) {
			break
		}
		if h.dice.Pause(ctx, 30*time.Millisecond); ctx.Err() != nil {
			t.Errorf("left: %+v, %v", n, err)
			break
		}
	}
	h.dice.Pause(ctx, time.Second) // what is late comes
	stop()
	consuming.Wait()
	h.settleDoubts(consumers + producers)
}

func (h *History) consume(ctx context.Context, t testing.TB, client int, q *kvqueue.Queue) {
	begin := h.clock.Add(1)
	err := q.Do(ctx, 1, func(ctx context.Context, items []kvqueue.Item) error {
		v := string(items[0].Value)
		h.mu.Lock()
		if sent := h.sent[string(items[0].Key[:])]; sent > 0 {
			begin = min(begin, sent)
		}
		h.seen[v] = true
		h.mu.Unlock()
		h.Add(client, begin, Step{What: "claim"}, v, h.clock.Add(1))
		h.dice.Pause(ctx, 20*time.Millisecond)
		begin := h.clock.Add(1)
		if err := q.Ack(ctx, items...); err != nil {
			return err
		}
		h.Add(client, begin, Step{"ack", v}, "", h.clock.Add(1))
		return nil
	})
	if err != nil && ctx.Err() == nil {
		t.Errorf("a consumer: %v", err)
	}
}

// Produce adds a value, and perhaps does not wait for the answer.
func (h *History) Produce(ctx context.Context, client int, q *kvqueue.Queue, v string) {
	begin, cancel := h.clock.Add(1), func() {}
	if h.dice.N(5) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(h.dice.N(int(10*time.Millisecond))))
	}
	defer cancel()
	_, err := q.Enqueue(ctx, []byte(v))
	switch {
	case err == nil:
		h.Add(client, begin, Step{What: "enqueue", Value: v}, "", h.clock.Add(1))
	case errors.Is(err, kvqueue.ErrUnknown):
		h.mu.Lock()
		defer h.mu.Unlock()
		h.doubts = append(h.doubts, doubt{client, begin, v})
	}
}

// settleDoubts adds those enqueues of which nothing was known, and whose items have come.
func (h *History) settleDoubts(client int) {
	for i, d := range h.doubts {
		if h.seen[d.value] { // else it was not done
			h.Add(client+i, d.begin, Step{"enqueue", d.value}, "", math.MaxInt64/2)
		}
	}
}

// Verdict looks for an order of all steps, each between its call and its return, in which
// the queue is one.
func (h *History) Verdict() porcupine.CheckResult {
	h.mu.Lock()
	defer h.mu.Unlock()
	return porcupine.CheckOperationsTimeout(fifo, h.steps, 10*time.Second)
}

// Check has a test fail if there is no such order. One that is not found within ten seconds is not
// missed.
func (h *History) Check(t testing.TB) {
	t.Helper()
	switch h.Verdict() {
	case porcupine.Ok:
		return
	case porcupine.Unknown:
		t.Logf("no order of %d steps was found in time", len(h.steps))
		return
	}
	slices.SortFunc(h.steps, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var b strings.Builder
	for _, o := range h.steps {
		fmt.Fprintf(&b, "%d: %d-%d %+v -> %v\n", o.ClientId, o.Call, o.Return, o.Input, o.Output)
	}
	t.Errorf("no order of these steps explains the answers:\n%s", b.String())
}
