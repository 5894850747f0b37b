package kvqueue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
)

// runs are all ways to run a handler once.
var runs = map[string]func(ctx context.Context, q *kvqueue.Queue, most int, f func(ctx context.Context, items []kvqueue.Item) error) error{
	"Do": func(ctx context.Context, q *kvqueue.Queue, most int, f func(ctx context.Context, items []kvqueue.Item) error) error {
		return q.Do(ctx, most, f)
	},
	"Take": func(ctx context.Context, q *kvqueue.Queue, most int, f func(ctx context.Context, items []kvqueue.Item) error) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			items, err := q.Take(ctx, most)
			if err != nil {
				return err
			}
			return f(ctx, items)
		})
	},
}

// A hearing observer keeps what it is told of one kind.
type hearing struct {
	mu   sync.Mutex
	kind kvqueue.EventKind
	told []kvqueue.Report
}

func (h *hearing) observe() kvqueue.Option {
	return kvqueue.Observe(func(r kvqueue.Report) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if r.Kind == h.kind {
			h.told = append(h.told, r)
		}
	})
}

func (h *hearing) all() []kvqueue.Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.told
}

// At the time limit the context of a run ends, with a cause that names the limit. Whatever the handler returns then, the run
// has failed, and the item is a dead letter after MaxAttempts of these.
func TestARunThatTakesTooLongHasFailed(t *testing.T) {
	for name, run := range runs {
		for returns, of := range map[string]func(ctx context.Context) error{
			"the cause": context.Cause, "the error of the ctx": context.Context.Err, "nil": func(context.Context) error { return nil },
		} {
			t.Run(name+" returns "+returns, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := &hearing{kind: kvqueue.Overdue}
					q := open(t, newStore(t), "q", kvqueue.TimeLimit(time.Minute), kvqueue.MaxAttempts(2), h.observe())
					_, err := q.Enqueue(t.Context(), []byte("a"))
					require.NoError(t, err)
					for attempt := range 2 {
						err := run(t.Context(), q, 1, func(ctx context.Context, items []kvqueue.Item) error {
							assert.Equal(t, attempt+1, items[0].Attempt)
							begin := time.Now()
							require.Error(t, async.Sleep(ctx, time.Hour))
							assert.Equal(t, time.Minute, time.Since(begin))
							var limit *async.TimeoutError
							require.ErrorAs(t, context.Cause(ctx), &limit)
							assert.Equal(t, time.Minute, limit.Limit)
							return of(ctx)
						})
						assert.ErrorIs(t, err, context.DeadlineExceeded)
						assert.ErrorContains(t, err, "limit 1m0s")
						synctest.Wait()
						assert.Len(t, h.all(), attempt+1)
					}
					letters, err := q.Dead(t.Context(), kvqueue.Key{}, 1)
					require.NoError(t, err)
					require.Len(t, letters, 1)
					assert.Equal(t, 2, letters[0].Failures)
					assert.Zero(t, letters[0].Crashes)
					assert.Contains(t, letters[0].Why, "limit 1m0s")
					assert.Contains(t, h.all()[0].Why, "limit 1m0s")
					assert.EqualValues(t, 2, q.Stats().Overdue)
				})
			})
		}
	}
}

// A handler that does not look at its context keeps its items as long as its process lives: nobody else works on them. The
// observer has heard of it.
func TestAnItemOfAHandlerThatDoesNotReturnStaysClaimed(t *testing.T) {
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv, h := newStore(t), &hearing{kind: kvqueue.Overdue}
				q, other := open(t, kv, "q", kvqueue.TimeLimit(time.Minute), kvqueue.TTL(time.Second), h.observe()), open(t, kv, "q")
				_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
				require.NoError(t, err)
				require.ErrorContains(t, run(t.Context(), q, 2, func(ctx context.Context, items []kvqueue.Item) error {
					time.Sleep(time.Hour)
					require.Len(t, h.all(), 1)
					assert.Equal(t, 2, h.all()[0].Items)
					taken, err := tryTake(t, other)
					assert.NoError(t, err)
					assert.Empty(t, taken)
					for _, i := range items {
						assert.NoError(t, i.Err())
					}
					return nil
				}), "limit 1m0s")
				assert.Equal(t, kvqueue.Length{Ready: 2}, lengthOf(t, other))
				assert.Len(t, h.all(), 1)
			})
		})
	}
}

// The limit is that of a run: when all items are settled the scope goes on, and those that are left when the time is up are
// told, and no others.
func TestATimeLimitIsForItemsThatAreNotSettled(t *testing.T) {
	for name, run := range runs {
		for _, acknowledged := range []int{0, 1, 2} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := &hearing{kind: kvqueue.Overdue}
					q := open(t, newStore(t), "q", kvqueue.TimeLimit(time.Minute), h.observe())
					_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
					require.NoError(t, err)
					err = run(t.Context(), q, 2, func(ctx context.Context, items []kvqueue.Item) error {
						require.NoError(t, q.Ack(ctx, items[:acknowledged]...))
						return async.Sleep(ctx, time.Hour)
					})
					synctest.Wait()
					if acknowledged == 2 {
						assert.NoError(t, err)
						assert.Empty(t, h.all())
					} else {
						assert.ErrorContains(t, err, "limit 1m0s")
						require.Len(t, h.all(), 1)
						assert.Equal(t, 2-acknowledged, h.all()[0].Items)
					}
					assert.Equal(t, kvqueue.Length{Ready: (2 - acknowledged) % 3}, lengthOf(t, q))
				})
			})
		}
	}
}

// A run that ends in time is not told anything, and one that is told to stop before has spent no attempt.
func TestARunThatEndsInTimeKnowsNothingOfTheLimit(t *testing.T) {
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hearing{kind: kvqueue.Overdue}
				q := open(t, newStore(t), "q", kvqueue.TimeLimit(time.Minute), h.observe())
				_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
				require.NoError(t, err)
				_ = run(t.Context(), q, 1, func(ctx context.Context, _ []kvqueue.Item) error { return async.Sleep(ctx, 59*time.Second) })
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				_ = run(ctx, q, 1, func(ctx context.Context, _ []kvqueue.Item) error { return async.Sleep(ctx, time.Hour) })
				time.Sleep(time.Hour)
				assert.Empty(t, h.all())
				items, err := q.Peek(t.Context(), 2)
				require.NoError(t, err)
				require.Len(t, items, 1)
				assert.Zero(t, items[0].Attempt)
			})
		})
	}
}

// The limit belongs to the queue: Configure changes it for handles that are open, and a run has that of its claim.
func TestATimeLimitIsTheQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q, admin := open(t, kv, "q"), open(t, kv, "q")
		waits(t, q)()
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		require.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, _ []kvqueue.Item) error {
			p, err := admin.Configure(ctx, kvqueue.TimeLimit(time.Second))
			require.NoError(t, err)
			assert.Equal(t, time.Second, p.TimeLimit)
			return async.Sleep(ctx, time.Minute)
		}), "it was claimed before")
		assert.Equal(t, time.Second, q.Policy().TimeLimit)
		_, err = q.Enqueue(t.Context(), []byte("b"))
		require.NoError(t, err)
		assert.ErrorContains(t, q.Do(t.Context(), 1, func(ctx context.Context, _ []kvqueue.Item) error {
			return async.Sleep(ctx, time.Minute)
		}), "limit 1s")
		var wrong *kvqueue.InvalidError
		_, err = q.Configure(t.Context(), kvqueue.TimeLimit(-1))
		assert.ErrorAs(t, err, &wrong)
		p, err := admin.Configure(t.Context(), kvqueue.TimeLimit(0))
		require.NoError(t, err)
		assert.Zero(t, p.TimeLimit)
	})
}

// A run that has failed by its own error and one that is overdue are counted alike, and a session that is lost is a
// crash as before.
func TestALostSessionIsNoTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv, h := newStore(t), &hearing{kind: kvqueue.Overdue}
		net := newCut(kv)
		q := open(t, net, "q", kvqueue.TimeLimit(time.Hour), kvqueue.TTL(time.Second), h.observe())
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		err = q.Do(t.Context(), 1, func(ctx context.Context, _ []kvqueue.Item) error {
			net.off()
			<-ctx.Done()
			net.on()
			return context.Cause(ctx)
		})
		assert.ErrorIs(t, err, kvqueue.ErrLost)
		assert.False(t, errors.Is(err, context.DeadlineExceeded))
		assert.Empty(t, h.all())
	})
}

// A worker of Consume goes on with the next item.
func TestConsumeGoesOnAfterTheTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, newStore(t), "q", kvqueue.TimeLimit(time.Minute), kvqueue.MaxAttempts(1))
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		assert.ErrorIs(t, q.Consume(ctx, 1, 1, func(ctx context.Context, items []kvqueue.Item) error {
			if string(items[0].Value) == "a" {
				return async.Sleep(ctx, time.Hour)
			}
			defer cancel()
			return q.Ack(ctx, items...)
		}), context.Canceled)
		assert.Equal(t, kvqueue.Length{Dead: 1}, lengthOf(t, q))
	})
}

// A run that has failed by Nack is over for the time limit, though its item stays claimed until its next run may come.
func TestAnItemThatWaitsForItsRetryDelayIsNotOverdue(t *testing.T) {
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hearing{kind: kvqueue.Overdue}
				q := open(t, newStore(t), "q", kvqueue.TimeLimit(time.Minute), kvqueue.RetryDelay(time.Hour, time.Hour), h.observe())
				_, err := q.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				assert.NoError(t, run(t.Context(), q, 1, func(ctx context.Context, items []kvqueue.Item) error {
					require.NoError(t, q.Nack(ctx, errFails, items...))
					return async.Sleep(ctx, 10*time.Minute)
				}))
				assert.Empty(t, h.all())
				assert.Equal(t, kvqueue.Length{Claimed: 1}, lengthOf(t, q))
				time.Sleep(2 * time.Hour)
				assert.Equal(t, kvqueue.Length{Ready: 1}, lengthOf(t, q))
			})
		})
	}
}
