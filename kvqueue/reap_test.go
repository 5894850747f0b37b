package kvqueue_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// A far store is one whose answers take a while, and says how many transactions that give back
// what a session had are done and how many are spoilt.
type far struct {
	kvqueue.KV
	reaped, spoilt *atomic.Int64
}

func (f far) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	time.Sleep(5 * time.Millisecond)
	rev, err := f.KV.Commit(ctx, guards, writes)
	if reaps(guards) {
		if err == nil {
			f.reaped.Add(1)
		} else {
			f.spoilt.Add(1)
		}
	}
	time.Sleep(5 * time.Millisecond)
	return rev, err
}

// The items of a session are given back by one handle, the oldest, though all see that it has ended.
func TestOneHandleGivesBackWhatASessionHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reaped, spoilt atomic.Int64
		kv := far{newStore(t), &reaped, &spoilt}
		ctx, stop := context.WithCancel(t.Context())
		const handles, dying = 32, 10
		in := open(t, kv, "q")
		var die []func()
		for i := range dying { // each with a claim
			_, err := in.Enqueue(t.Context(), fmt.Append(nil, i))
			require.NoError(t, err)
			q, err := kvqueue.Open(t.Context(), kv, "q")
			require.NoError(t, err)
			began, ended := make(chan bool), make(chan error)
			go func() {
				ended <- q.Do(t.Context(), 1, func(ctx context.Context, _ []kvqueue.Item) error {
					close(began)
					<-ctx.Done()
					return nil
				})
			}()
			<-began
			die = append(die, func() {
				require.NoError(t, q.Close(t.Context()))
				require.ErrorIs(t, <-ended, kvqueue.ErrLost)
			})
		}
		ended := make(chan error)
		for range handles {
			q := open(t, kv, "q")
			go func() {
				ended <- q.Consume(ctx, 1, 1, func(context.Context, []kvqueue.Item) error { return nil })
			}()
		}
		time.Sleep(10 * time.Second)
		for _, f := range die {
			f()
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		stop()
		for range handles {
			<-ended
		}
		// Each has its claim, and what says that there is one; a claim of another may spoil one.
		assert.GreaterOrEqual(t, reaped.Load(), int64(2*dying))
		assert.LessOrEqual(t, reaped.Load(), int64(3*dying))
		assert.LessOrEqual(t, spoilt.Load(), int64(2*dying))
		n, err := in.Len(t.Context())
		require.NoError(t, err)
		assert.Zero(t, n)
	})
}
