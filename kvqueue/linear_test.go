package kvqueue_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// There is an order of all enqueues, claims and acknowledgements, each between its call and
// its return, in which the queue is one. Transactions are refused, and the answers of
// those that add, claim or acknowledge are lost; an enqueue whose caller has gone may be done
// at any later time.
func TestHistoriesAreLinearizable(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := proof.NewHistory(seed)
			synctest.Test(t, func(t *testing.T) { record(t, h, newStore(t, memkv.Faults(h.Faults)), seed, 5) })
			h.Check(t)
		})
	}
}

// record has three handles on a store that answers slowly make a history, with so many items of
// each producer.
func record(t *testing.T, h *proof.History, kv kvqueue.KV, seed uint64, each int) {
	dice := proof.NewDice(seed + 1)
	var handles []*kvqueue.Queue
	for range 3 {
		net := newCut(kv)
		net.delay = func() time.Duration { return time.Duration(dice.N(int(3 * time.Millisecond))) }
		handles = append(handles, open(t, h.Noted(net), "q"))
	}
	h.Record(t, handles, each)
}

// The checker of histories finds what is wrong with a queue that gets broken stores, or
// with these stories of one.
func TestABrokenQueueIsNotLinearizable(t *testing.T) {
	for name, breaks := range map[string]func(kvqueue.KV) kvqueue.KV{
		"claims are in the wrong order":       func(kv kvqueue.KV) kvqueue.KV { return lastFirst{kv} },
		"what was acknowledged comes again":   func(kv kvqueue.KV) kvqueue.KV { return &undying{KV: kv, once: new(atomic.Bool)} },
		"what Enqueue has added is not there": func(kv kvqueue.KV) kvqueue.KV { return &forgetful{KV: kv, once: new(atomic.Bool)} },
	} {
		t.Run(name, func(t *testing.T) {
			h := proof.NewHistory(1)
			synctest.Test(t, func(t *testing.T) {
				kv := breaks(newStore(t))
				q := open(t, kv, "q")
				for i := range 12 { // so that there is more than one
					h.Produce(t.Context(), 100, q, fmt.Sprint("before.", i))
				}
				record(t, h, kv, 1, 1)
			})
			assert.Equal(t, porcupine.Illegal, h.Verdict())
		})
	}
	for name, story := range map[string]string{
		"swapped":           "enqueue a, enqueue b, claim b, claim a",
		"claimed twice":     "enqueue a, claim a, claim a",
		"settled twice":     "enqueue a, claim a, ack a, ack a",
		"claimed when gone": "enqueue a, claim a, ack a, claim a",
		"from nowhere":      "enqueue a, claim b",
		"too early":         "claim a, enqueue a",
		"settled by nobody": "enqueue a, ack a",
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, porcupine.Illegal, told(story).Verdict()) })
	}
	assert.Equal(t, porcupine.Ok, told("enqueue a, enqueue b, claim a, ack a, claim b, ack b").Verdict())
}

// told is the history of steps that came one after another.
func told(story string) *proof.History {
	h := proof.NewHistory(1)
	for i, step := range strings.Split(story, ", ") {
		what, value, _ := strings.Cut(step, " ")
		in := proof.Step{What: what, Value: value}
		if what == "claim" {
			in.Value = ""
		}
		h.Add(i, int64(2*i), in, value, int64(2*i+1))
	}
	return h
}

// A lastFirst store reads the ready items from the end.
type lastFirst struct{ kvqueue.KV }

func (s lastFirst) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	whole := slices.Clone(ranges)
	for i := range whole {
		whole[i].Limit = 0
	}
	results, rev, err := s.KV.Read(ctx, whole...)
	for i := range results {
		r := &results[i]
		if bytes.Contains(ranges[i].Begin, []byte("/q/q/")) {
			slices.Reverse(r.Pairs)
		}
		if limit := ranges[i].Limit; limit > 0 && len(r.Pairs) > limit {
			r.Pairs, r.More = r.Pairs[:limit], true
		}
	}
	return results, rev, err
}

// An undying store puts back one item that was acknowledged.
type undying struct {
	kvqueue.KV
	once *atomic.Bool
}

func (s *undying) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	for i, w := range writes {
		if payload := bytes.Index(w.Key, []byte("/d/")); w.Delete && payload > 0 && s.once.CompareAndSwap(false, true) {
			writes = slices.Clone(writes)
			key := bytes.Clone(w.Key)
			key[payload+1] = 'q'
			writes[i] = kvqueue.Write{Key: key, Value: []byte{0, 0, 1}}
			break
		}
	}
	return s.KV.Commit(ctx, guards, writes)
}

// A forgetful store does not put the first item that is added.
type forgetful struct {
	kvqueue.KV
	once *atomic.Bool
}

func (s *forgetful) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	own := slices.Clone(writes)
	if slices.ContainsFunc(writes, func(w kvqueue.Write) bool { return !w.Delete && bytes.Contains(w.Key, []byte("/d/")) }) && s.once.CompareAndSwap(false, true) {
		own = slices.DeleteFunc(own, func(w kvqueue.Write) bool {
			return bytes.Contains(w.Key, []byte("/q/q/")) || bytes.Contains(w.Key, []byte("/d/"))
		})
	}
	return s.KV.Commit(ctx, guards, own)
}
