package kvqueue_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// failOnce has the first item of a queue fail.
func failOnce(t *testing.T, q *kvqueue.Queue) {
	t.Helper()
	require.ErrorIs(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return errFails }), errFails)
}

// An overruled observer notes what it is told of the options.
func overruled(n *atomic.Int64) kvqueue.Option {
	return kvqueue.Observe(func(r kvqueue.Report) {
		if r.Kind == kvqueue.Overruled {
			n.Add(1)
		}
	})
}

// Two handles with different options judge the items of their queue alike: by those of the handle
// that was first, and the other is told.
func TestAPolicyBelongsToTheQueueAndNotToAHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		producer := open(t, kv, "q")
		first, err := kvqueue.Open(t.Context(), kv, "other", kvqueue.MaxAttempts(100), kvqueue.RetryDelay(0, 0))
		require.NoError(t, err)
		defer func() { require.NoError(t, first.Close(t.Context())) }()
		var told atomic.Int64
		hasty, err := kvqueue.Open(t.Context(), kv, "other", kvqueue.MaxAttempts(1), overruled(&told))
		require.NoError(t, err)
		defer func() { require.NoError(t, hasty.Close(t.Context())) }()
		assert.EqualValues(t, 1, told.Load())
		assert.EqualValues(t, 1, hasty.Stats().Overruled)
		same, err := kvqueue.Open(t.Context(), kv, "other", kvqueue.MaxAttempts(100))
		require.NoError(t, err)
		defer func() { require.NoError(t, same.Close(t.Context())) }()
		assert.Zero(t, same.Stats().Overruled, "an option that was not given is no other")

		_, err = first.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		failOnce(t, hasty)
		n, err := first.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, kvqueue.Length{Ready: 1}, n)
		assert.Equal(t, kvqueue.Policy{MaxAttempts: 25, Retention: 24 * time.Hour}, producer.Policy(), "another queue has its own")
		audit, err := hasty.Audit(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 100, audit.Policy.MaxAttempts)
		assert.Empty(t, audit.Faults)
	})
}

// Handles without options of the queue leave it to others to choose.
func TestAProducerChoosesNoPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		producer, err := kvqueue.Open(t.Context(), kv, "q")
		require.NoError(t, err)
		defer func() { require.NoError(t, producer.Close(t.Context())) }()
		_, err = producer.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		q := open(t, kv, "q", kvqueue.MaxAttempts(1))
		failOnce(t, q)
		n, err := producer.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, kvqueue.Length{Dead: 1}, n)
	})
}

// One of the handles that choose at the same time wins, and every other is told.
func TestOfRacingMakersOneChoosesThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		var told atomic.Int64
		var all sync.WaitGroup
		queues := make([]*kvqueue.Queue, 8)
		for i := range queues {
			all.Go(func() {
				var err error
				queues[i], err = kvqueue.Open(t.Context(), slow{kv}, "q", kvqueue.MaxAttempts(i+1), overruled(&told))
				assert.NoError(t, err)
			})
		}
		all.Wait()
		for _, q := range queues {
			assert.Equal(t, queues[0].Policy(), q.Policy())
			require.NoError(t, q.Close(t.Context()))
		}
		assert.EqualValues(t, len(queues)-1, told.Load())
	})
}

// A slow store takes a while for each transaction.
type slow struct{ kvqueue.KV }

func (s slow) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	time.Sleep(time.Millisecond)
	return s.KV.Commit(ctx, guards, writes)
}

// A change of the policy is heard by handles that are open. An item is judged by the policy of
// its claim.
func TestConfigureIsForAllHandles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q, admin := open(t, kv, "q"), open(t, kv, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		err = q.Do(t.Context(), 1, func(ctx context.Context, _ []kvqueue.Item) error {
			p, err := admin.Configure(ctx, kvqueue.MaxAttempts(1), kvqueue.MaxCrashes(7))
			require.NoError(t, err)
			assert.Equal(t, kvqueue.Policy{MaxAttempts: 1, MaxCrashes: 7, Retention: 24 * time.Hour}, p)
			synctest.Wait()
			assert.Equal(t, p, q.Policy(), "the watch has told it")
			return errFails
		})
		require.ErrorIs(t, err, errFails)
		n, err := q.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, kvqueue.Length{Ready: 2}, n, "it was claimed before")
		failOnce(t, q)
		n, err = q.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, kvqueue.Length{Ready: 1, Dead: 1}, n)

		var wrong *kvqueue.InvalidError
		_, err = q.Configure(t.Context(), kvqueue.TTL(time.Second))
		assert.ErrorAs(t, err, &wrong)
		_, err = q.Configure(t.Context(), kvqueue.MaxAttempts(0))
		assert.ErrorAs(t, err, &wrong)
	})
}

// Crashes are judged by the policy of the queue, whoever gives the items back.
func TestAReaperHasThePolicyOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		dies := open(t, net, "q", kvqueue.MaxCrashes(2))
		reaper := open(t, kv, "q", kvqueue.MaxCrashes(1))
		_, err := dies.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		err = dies.Do(t.Context(), 1, func(ctx context.Context, _ []kvqueue.Item) error {
			net.endSession()
			<-ctx.Done()
			return nil
		})
		assert.ErrorIs(t, err, kvqueue.ErrLost)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		assert.NoError(t, reaper.Do(ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
			assert.Equal(t, 2, items[0].Attempt)
			return nil
		}))
	})
}

// A policy that nobody understands is named, and the queue has the usual one.
func TestAForeignPolicyStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("kvq/q/p"), Value: []byte("?")}})
		require.NoError(t, err)
		q, err := kvqueue.Open(t.Context(), kv, "q", kvqueue.MaxAttempts(3))
		require.NoError(t, err)
		defer func() { require.NoError(t, q.Close(t.Context())) }()
		assert.Equal(t, 25, q.Policy().MaxAttempts)
		audit, err := q.Audit(t.Context())
		require.NoError(t, err)
		require.Len(t, audit.Faults, 1)
		assert.Contains(t, audit.Faults[0], `policy that this package did not write: "?"`)
		p, err := q.Configure(t.Context(), kvqueue.MaxAttempts(4))
		require.NoError(t, err)
		assert.Equal(t, 4, p.MaxAttempts)
	})
}

// The making of a policy, and a change, whose answers are lost.
func TestAPolicyWhoseAnswerIsLost(t *testing.T) {
	for name, fault := range map[string]memkv.Fault{"done": memkv.Unanswered, "not done": memkv.Dropped} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var left atomic.Int64
				kv := newStore(t, memkv.Faults(func(_ []kvqueue.Guard, writes []kvqueue.Write) memkv.Fault {
					if len(writes) == 1 && string(writes[0].Key) == "kvq/q/p" && left.Add(-1) >= 0 {
						return fault
					}
					return memkv.None
				}))
				left.Store(1)
				var told atomic.Int64
				q, err := kvqueue.Open(t.Context(), kv, "q", kvqueue.MaxAttempts(3), overruled(&told))
				require.NoError(t, err)
				defer func() { require.NoError(t, q.Close(t.Context())) }()
				assert.Equal(t, 3, q.Policy().MaxAttempts)
				assert.Zero(t, told.Load())
				left.Store(1)
				_, err = q.Configure(t.Context(), kvqueue.MaxAttempts(4))
				assert.True(t, errors.Is(err, kvqueue.ErrUnknown), "%v", err)
			})
		})
	}
}

// A queue whose layout a later version has made is not opened.
func TestALayoutThatIsNewerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for version, refused := range map[string]bool{"1": false, "2": false, "3": true, "?": true} {
			kv := newStore(t)
			_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("kvq/q/v"), Value: []byte(version)}})
			require.NoError(t, err)
			q, err := kvqueue.Open(t.Context(), kv, "q")
			assert.Equal(t, refused, errors.As(err, new(*kvqueue.InvalidError)), "%v", err)
			if err == nil {
				require.NoError(t, q.Close(t.Context()))
			}
		}
	})
}

// A store that was restored has younger policies at smaller revisions.
func TestThePolicyOfARestoredStoreIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newStore(t)
		kv := &struct{ kvqueue.KV }{first}
		q := open(t, kv, "q", kvqueue.MaxAttempts(2))
		for n := range 50 {
			_, err := q.Configure(t.Context(), kvqueue.MaxAttempts(3+n))
			require.NoError(t, err)
		}
		kv.KV = mirror(t, first)
		p, err := q.Configure(t.Context(), kvqueue.MaxAttempts(1000))
		require.NoError(t, err)
		assert.Equal(t, 1000, p.MaxAttempts)
		assert.Equal(t, 1000, q.Policy().MaxAttempts)
	})
}
