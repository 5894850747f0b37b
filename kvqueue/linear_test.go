package kvqueue_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// There is an order of all that clients ask for, each between its call and its return, in which
// the queue is one: an item that is given back is at its old place, of a group one item is claimed at a time, of an id one is added, and a repeat is told its key; one whose owner is gone comes
// back once, and not while its owner's context lives, and every run that has failed or gone away
// is counted. Transactions are refused, answers are lost, and a handle is cut off until its session
// has ended; what a caller did not wait for may be done at any later time.
func TestHistoriesAreLinearizable(t *testing.T) {
	for seed := range uint64(*histories) {
		t.Run(fmt.Sprint(seed+*from), func(t *testing.T) {
			h := proof.NewHistory(seed + *from)
			synctest.Test(t, func(t *testing.T) { record(t, h, newStore(t), seed+*from, 5, int(seed%3), int(seed%4)*2, h.Faults) })
			h.Check(t)
		})
	}
}

// record has three handles on a store that answers slowly make a history, with so many items of
// each producer, which are of so many groups or of none. The network of one fails for longer than its session lives, now and then.
func record(t *testing.T, h *proof.History, kv kvqueue.KV, seed uint64, each, groups, ids int, faults func([]kvqueue.Guard, []kvqueue.Write) memkv.Fault) {
	defer bound(seed)()
	h.Exact = true
	dice := proof.NewDice(seed + 1)
	var clients []*proof.Client
	var first *cut
	for i := range 3 {
		c, err := proof.NewClient(t.Context(), h, fmt.Sprint(i), dice, kv, func(kv kvqueue.KV) kvqueue.KV {
			net := newCut(kv)
			net.delay = func() time.Duration { return time.Duration(dice.N(int(3 * time.Millisecond))) }
			if first == nil {
				first = net
			}
			faulty := memkv.NewFaulty(net, faults)
			t.Cleanup(faulty.Wait)
			return faulty
		}, proof.Limits(kvqueue.TTL(2*time.Second))...)
		require.NoError(t, err)
		c.Groups, c.IDs = groups, ids
		clients = append(clients, c)
	}
	h.Record(t, kv, clients, each, func(ctx context.Context) {
		for ctx.Err() == nil {
			dice.Pause(ctx, 2*time.Second)
			first.off()
			dice.Pause(ctx, 4*time.Second)
			first.on()
		}
	})
}
