package kvqueue_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
)

// takes are the two calls that claim for a scope.
var takes = map[string]func(q *kvqueue.Queue, ctx context.Context, most int) ([]kvqueue.Item, error){
	"Take": (*kvqueue.Queue).Take, "TryTake": (*kvqueue.Queue).TryTake,
}

// The context of the call had a time limit for the wait. The items are those of the scope.
func TestTheItemsOfATakeAreThoseOfTheScopeNotOfItsContext(t *testing.T) {
	for name, take := range takes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := open(t, newStore(t), "q")
				_, err := q.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
					hurry, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					items, err := take(q, hurry, 1)
					require.Len(t, items, 1)
					return err
				}))
				n, err := q.Len(t.Context())
				require.NoError(t, err)
				assert.Equal(t, kvqueue.Length{}, n, "the scope has ended well")
			})
		})
		t.Run(name+", lost", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newCut(newStore(t))
				q := open(t, kv, "q")
				_, err := q.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				err = async.Scope(t.Context(), func(ctx context.Context) error {
					hurry, cancel := context.WithTimeout(ctx, time.Second)
					_, err := take(q, hurry, 1)
					cancel()
					require.NoError(t, err)
					kv.off()
					select {
					case <-ctx.Done():
						assert.ErrorIs(t, context.Cause(ctx), kvqueue.ErrLost)
					case <-time.After(time.Hour):
						t.Error("the scope works on what others have claimed")
					}
					return nil
				})
				assert.ErrorIs(t, err, kvqueue.ErrLost)
				kv.on()
			})
		})
	}
}

// A consumer may take, and acknowledge, in one scope for as long as it lives.
func TestAScopeThatLastsForLongKeepsNothingOfWhatWasSettled(t *testing.T) {
	for name, take := range takes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := open(t, newStore(t), "q")
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
					var values []weak.Pointer[byte]
					before := 0
					for i := range 60 {
						_, err := q.Enqueue(ctx, make([]byte, 1000), make([]byte, 1000))
						require.NoError(t, err)
						items, err := take(q, ctx, 2)
						require.NoError(t, err)
						for _, item := range items {
							values = append(values, weak.Make(&item.Value[0]))
						}
						require.NoError(t, []func(context.Context, ...kvqueue.Item) error{
							q.Ack,
							func(ctx context.Context, items ...kvqueue.Item) error { return q.Commit(ctx, items, nil) },
						}[i%2](ctx, items...))
						synctest.Wait()
						if i == 10 {
							before = runtime.NumGoroutine()
						}
					}
					assert.Less(t, runtime.NumGoroutine(), before+20, "after 49 calls more; those of other tests come and go")
					for range 3 {
						runtime.GC()
					}
					kept := 0
					for _, v := range values[:100] {
						if v.Value() != nil {
							kept++
						}
					}
					assert.Zero(t, kept, "values of items that are gone")
					return nil
				}))
				n, err := q.Len(t.Context())
				require.NoError(t, err)
				assert.Equal(t, kvqueue.Length{}, n)
			})
		})
	}
}

func TestATakeNeedsNoPlaceUnderALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newCut(newStore(t))
		q := open(t, kv, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		ran := false
		err = async.Scope(t.Context(), func(ctx context.Context) error {
			_, err := q.Take(ctx, 1)
			require.NoError(t, err)
			async.Go(ctx, func(ctx context.Context) error {
				ran = true
				kv.off()
				<-ctx.Done() // the only place is taken until here
				return nil
			})
			return nil
		}, async.Limit(1))
		assert.True(t, ran)
		assert.ErrorIs(t, err, kvqueue.ErrLost)
		kv.on()
	})
}

func TestOnAScopeThatHasEndedNothingIsTaken(t *testing.T) {
	for name, take := range takes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := open(t, newStore(t), "q")
				_, err := q.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				var kept context.Context
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
					kept = context.WithoutCancel(ctx)
					return nil
				}))
				_, err = take(q, kept, 1)
				assert.ErrorIs(t, err, async.ErrScopeEnded)
				require.NoError(t, q.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
					assert.Equal(t, 1, items[0].Attempt)
					return nil
				}))
			})
		})
	}
	t.Run("it ends while the call waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := open(t, newStore(t), "q")
			var waits sync.WaitGroup
			require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
				kept := context.WithoutCancel(ctx)
				waits.Go(func() {
					_, err := q.Take(kept, 1)
					assert.ErrorIs(t, err, async.ErrScopeEnded)
				})
				synctest.Wait()
				return nil
			}))
			_, err := q.Enqueue(t.Context(), []byte("a"))
			require.NoError(t, err)
			waits.Wait()
			require.NoError(t, q.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
				assert.Equal(t, 1, items[0].Attempt)
				return nil
			}))
		})
	})
}

// An item that went back is not done, and its caller must not think so.
func TestDoSaysThatItsItemsWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, newStore(t), "q")
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		err = q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { stop(); return nil })
		assert.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, []string{"a", "b"}, all(t, q))

		ctx, stop = context.WithCancel(t.Context())
		err = q.Do(ctx, 1, func(ctx context.Context, items []kvqueue.Item) error {
			stop()
			return q.Ack(context.WithoutCancel(ctx), items...)
		})
		assert.NoError(t, err, "nothing went back")
		assert.Equal(t, []string{"b"}, all(t, q))
	})
}

// An error whose Is panics, as one does that compares what cannot be compared.
type badIs struct{}

func (badIs) Error() string   { return "bad" }
func (badIs) Is(error) bool   { panic("Is") }
func (badIs) Unwrap() []error { panic("Unwrap") }

func TestAnErrorWhoseMethodsPanicIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		require.Error(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return badIs{} }))
		require.Error(t, async.Scope(t.Context(), func(ctx context.Context) error {
			items, err := q.Take(ctx, 1)
			require.NoError(t, err)
			assert.Equal(t, 2, items[0].Attempt)
			return badIs{}
		}))
		ctx, stop := context.WithCancelCause(t.Context())
		_ = async.Scope(ctx, func(ctx context.Context) error {
			items, err := q.Take(ctx, 1)
			require.NoError(t, err)
			assert.Equal(t, 3, items[0].Attempt)
			stop(badIs{})
			return nil
		})
		assert.NotPanics(t, func() { // and its claim is taken away
			assert.Error(t, q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
				assert.Equal(t, 3, items[0].Attempt, "it was told to stop")
				results, _, err := kv.Read(ctx, kvqueue.Range{Begin: []byte("kvq/q/w/"), End: []byte("kvq/q/w0")})
				require.NoError(t, err)
				_, err = kv.Commit(ctx, nil, []kvqueue.Write{{Key: results[0].Pairs[0].Key, Delete: true}})
				require.NoError(t, err)
				return badIs{}
			}))
		})
	})
}
