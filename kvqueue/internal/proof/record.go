package proof

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// Faults are whatever can go wrong with what adds, claims and ends items, and puts them back. Those
// of a session or a request would say that the session has ended.
func (h *History) Faults(_ []kvqueue.Guard, writes []kvqueue.Write) memkv.Fault {
	return faultOf(h.dice, writes)
}

func faultOf(d *Dice, writes []kvqueue.Write) memkv.Fault {
	if !ofItems(writes) || d.N(4) > 0 {
		return memkv.None
	}
	return []memkv.Fault{memkv.Conflict, memkv.Dropped, memkv.Unanswered, memkv.Late}[d.N(4)]
}

// ofItems reports whether a transaction takes items from where they are, or adds some.
func ofItems(writes []kvqueue.Write) bool {
	return slices.ContainsFunc(writes, func(w kvqueue.Write) bool {
		return bytes.Contains(w.Key, []byte("/w/")) || bytes.Contains(w.Key, []byte("/d/")) || bytes.Contains(w.Key, []byte("/x/"))
	})
}

// Record has three clients use the queue of a store at random, each with producers and consumers,
// until nothing is left, or the history is given up. It closes their handles. Beside them happens
// is called; its context ends when all items were added and are gone.
func (h *History) Record(t testing.TB, kv kvqueue.KV, clients []*Client, each int, happens func(ctx context.Context)) {
	const producers, consumers = 4, 4
	ctx, stop := h.bounded(t.Context())
	defer stop()
	var consuming, producing sync.WaitGroup
	defer consuming.Wait()
	for c := range consumers {
		consuming.Go(func() { clients[c%len(clients)].Consume(ctx, false) })
	}
	consuming.Go(func() { clients[0].Revive(ctx) })
	if happens != nil {
		consuming.Go(func() { happens(ctx) })
	}
	for p := range producers {
		producing.Go(func() {
			for i := range each {
				clients[p%len(clients)].Produce(ctx, fmt.Sprintf("%d.%d", p, i))
				h.dice.Pause(ctx, clients[0].Second*3/100)
			}
		})
	}
	producing.Wait()
	drained := h.drained(ctx, clients[0], kv)
	stop()
	consuming.Wait()
	for _, c := range clients {
		closeClient(t, c)
	}
	if drained {
		h.finish(t, kv)
	}
}

// closeClient closes the handle of a client.
func closeClient(t testing.TB, c *Client) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Close(ctx); err == nil || !strings.Contains(err.Error(), "did not answer") { // as a busy machine may not, in the time that it is given
		assert.NoError(t, err)
	}
}

// drained looks again and again until nothing is left. It returns false if the history was given up
// before, or ctx has ended: a history of which something is left for ever has a fault.
func (h *History) drained(ctx context.Context, c *Client, kv kvqueue.KV) bool {
	var err error
	for range mostLooks {
		var empty bool
		if empty, err = c.Empty(ctx, kv); empty {
			return true
		}
		if h.dice.Pause(ctx, c.Second*3/100); ctx.Err() != nil {
			break
		}
	}
	h.giveUp(fmt.Sprintf("something is left (%v)", err))
	return false
}

// finish takes what has come late, when all others have ended.
func (h *History) finish(t testing.TB, kv kvqueue.KV) {
	ctx, stop := h.bounded(t.Context())
	defer stop()
	c, err := NewClient(t.Context(), h, "last", h.dice, kv, Direct)
	require.NoError(t, err)
	var consuming sync.WaitGroup
	consuming.Go(func() { c.Consume(ctx, true) })
	consuming.Go(func() { c.Revive(ctx) })
	time.Sleep(2 * lateBy) // a transaction that is late comes to nothing after that, as its handle is closed
	drained := h.drained(ctx, c, kv)
	stop()
	consuming.Wait()
	closeClient(t, c)
	if drained {
		h.drained(t.Context(), c, kv)
	}
}

// lateBy is for how long what a store in this process was asked for may stay on its way.
const lateBy = 50 * time.Millisecond
