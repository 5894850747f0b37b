package kvqueue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// Producers, consumers, and some who purge, discard and requeue work beside each other, while transactions are refused
// and answers are lost. No invariant is broken, and each item was acknowledged, deleted or is left: as many were deleted as
// the calls have counted, and at most so many more as they could not know of.
func TestRandomPurges(t *testing.T) {
	for seed := range uint64(*histories) {
		t.Run(fmt.Sprint(seed+*from), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runPurges(t, seed+*from) })
		})
	}
}

// A tally is what the callers were told.
type tally struct {
	added, acked, deleted, doubtful atomic.Int64
	unsure                          atomic.Bool // of an Enqueue or an Ack it is not known what came of it: nothing adds up
}

func runPurges(t *testing.T, seed uint64) {
	defer bound(seed)()
	dice, told := proof.NewDice(seed), &tally{}
	var faulty atomic.Bool
	likely := proof.Faults(dice, []int{0, 100, 400}[dice.N(3)])
	store := newStore(t, memkv.Faults(func(g []kvqueue.Guard, w []kvqueue.Write) memkv.Fault {
		if !faulty.Load() {
			return memkv.None
		}
		return likely(g, w)
	}))
	auditor := proof.NewAuditor("q")
	following, unfollow := context.WithCancel(t.Context())
	var followers, all sync.WaitGroup
	followers.Go(func() { auditor.Follow(following, proof.Always(store)) })
	require.NoError(t, auditor.Settle(t.Context(), store))
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	for range 2 {
		q := open(t, store, "q", kvqueue.MaxAttempts(2))
		all.Go(func() { told.produce(ctx, q, dice) })
		all.Go(func() { told.consume(ctx, q, dice) })
		all.Go(func() { told.erase(ctx, q, dice) })
	}
	faulty.Store(true)
	all.Wait()
	faulty.Store(false)
	time.Sleep(time.Minute) // what is late, and claims of those who have left
	require.NoError(t, auditor.Settle(t.Context(), store))
	require.NoError(t, auditor.Compare(t.Context(), store))
	unfollow()
	followers.Wait()
	auditor.Report(t)
	left, err := open(t, store, "q").Len(t.Context())
	require.NoError(t, err)
	if told.unsure.Load() {
		return
	}
	gone := told.added.Load() - told.acked.Load() - int64(left.Ready+left.Claimed+left.Dead)
	assert.GreaterOrEqual(t, gone, told.deleted.Load())
	assert.LessOrEqual(t, gone, told.deleted.Load()+told.doubtful.Load())
	assert.Positive(t, told.deleted.Load())
}

func (told *tally) produce(ctx context.Context, q *kvqueue.Queue, dice *proof.Dice) {
	for ctx.Err() == nil {
		pos, err := q.Enqueue(context.WithoutCancel(ctx), numbered(1+dice.N(100))...)
		told.added.Add(int64(pos.Items))
		if errors.Is(err, kvqueue.ErrUnknown) {
			told.unsure.Store(true)
		} else if err != nil {
			panic(err)
		}
		dice.Pause(ctx, time.Second)
	}
}

func (told *tally) consume(ctx context.Context, q *kvqueue.Queue, dice *proof.Dice) {
	_ = q.Consume(ctx, 3, 4, func(ctx context.Context, items []kvqueue.Item) error {
		dice.Pause(ctx, 200*time.Millisecond)
		if dice.N(3) == 0 {
			return errFails
		}
		if err := q.Ack(context.WithoutCancel(ctx), items...); err != nil {
			told.unsure.Store(true)
			return err
		}
		told.acked.Add(int64(len(items)))
		return nil
	})
}

func (told *tally) erase(ctx context.Context, q *kvqueue.Queue, dice *proof.Dice) {
	for ctx.Err() == nil {
		dice.Pause(ctx, 2*time.Second)
		f := kvqueue.Filter{Most: dice.N(200)}
		if dice.N(2) == 0 {
			f.Before = time.Now().Add(-time.Duration(dice.N(3)) * time.Second)
		}
		var n int
		var err error
		switch dice.N(3) {
		case 0:
			if _, err = q.RequeueAll(ctx, f); err == nil || ctx.Err() != nil {
				continue
			}
		case 1:
			n, err = q.DiscardAll(ctx, f)
		default:
			n, err = q.Purge(ctx, f)
		}
		told.deleted.Add(int64(n))
		if errors.Is(err, kvqueue.ErrUnknown) {
			var more int64
			_, rest, _ := strings.Cut(err.Error(), "it is not known whether ")
			if _, e := fmt.Sscan(rest, &more); e != nil {
				panic(err)
			}
			told.doubtful.Add(more)
		} else if err != nil && ctx.Err() == nil {
			panic(err)
		}
	}
}
