package kvqueue_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
)

// collect consumes with a number of workers until ctx ends, and tells what it got.
func collect(ctx context.Context, all *sync.WaitGroup, q *kvqueue.Queue, workers, most int, got func(items []kvqueue.Item)) {
	all.Go(func() {
		_ = q.Consume(ctx, workers, most, func(_ context.Context, items []kvqueue.Item) error {
			got(items)
			return nil
		})
	})
}

// Watches that show each change late, one after another, and break now and then: no claim
// is handed over twice, and none is forgotten.
func TestWhatALateWatchShowsIsHandedOverOnce(t *testing.T) {
	for _, lag := range []time.Duration{time.Millisecond, 40 * time.Millisecond, 700 * time.Millisecond} {
		t.Run(fmt.Sprint(lag), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t)
				in := open(t, kv, "q")
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var mu sync.Mutex
				runs := map[string]int{}
				var all sync.WaitGroup
				var nets []*lagging
				for range 3 {
					net := &lagging{KV: kv, lag: lag, breaks: make(chan struct{})}
					nets = append(nets, net)
					q := open(t, net, "q")
					for range 3 {
						all.Go(func() {
							_ = q.Consume(ctx, 1, 3, func(_ context.Context, items []kvqueue.Item) error {
								mu.Lock()
								defer mu.Unlock()
								for _, i := range items {
									key := fmt.Sprint(string(i.Value), " ", i.Fence)
									if runs[key]++; runs[key] > 1 {
										t.Errorf("%s was handed over twice", key)
									}
									if len(items) == 1 && i.Attempt == 1 && len(runs)%5 == 0 {
										return errFails
									}
								}
								return nil
							})
						})
					}
				}
				for i := range 150 {
					_, err := in.Enqueue(t.Context(), fmt.Append(nil, i))
					require.NoError(t, err)
					time.Sleep(time.Duration(i%7) * 10 * time.Millisecond)
					if i%20 == 10 {
						nets[i/20%3].broken()
					}
				}
				for {
					n, err := in.Len(t.Context())
					require.NoError(t, err)
					if n == (kvqueue.Length{}) {
						break
					}
					time.Sleep(time.Second)
					if time.Since(nets[0].began) > time.Hour {
						t.Fatalf("left: %+v", n)
					}
				}
				stop()
				all.Wait()
				assert.Zero(t, in.Stats().Reaped)
			})
		})
	}
}

// A lagging store shows each change late.
type lagging struct {
	kvqueue.KV
	lag    time.Duration
	mu     sync.Mutex
	breaks chan struct{}
	began  time.Time
}

func (l *lagging) broken() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.breaks)
	l.breaks = make(chan struct{})
}

func (l *lagging) Watch(ctx context.Context, after kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	return func(yield func(kvqueue.Event, error) bool) {
		l.mu.Lock()
		breaks := l.breaks
		l.began = time.Now()
		l.mu.Unlock()
		for e, err := range l.KV.Watch(ctx, after, prefixes...) {
			select {
			case <-time.After(l.lag):
			case <-breaks:
				yield(kvqueue.Event{}, kvqueue.ErrCompacted)
				return
			case <-ctx.Done():
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// A waiter that is cancelled as it is served gives the items back, and no attempt is spent.
func TestACallThatEndsAsItIsServedGivesItsItemsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		net.delay = func() time.Duration { return time.Millisecond }
		in, q := open(t, kv, "q"), open(t, net, "q")
		for after := time.Duration(0); after < 20*time.Millisecond; after += 100 * time.Microsecond {
			_, err := in.Enqueue(t.Context(), []byte("a"))
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), after)
			ran := false
			err = q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { ran = true; return nil })
			cancel()
			time.Sleep(time.Second)
			n, e := in.Len(t.Context())
			require.NoError(t, e)
			if err != nil {
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, kvqueue.Length{Ready: 1}, n, "after %v", after)
			}
			if ran && err == nil {
				assert.Equal(t, kvqueue.Length{}, n)
			}
			if n.Ready == 1 {
				require.NoError(t, in.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
					assert.Equal(t, 1, items[0].Attempt)
					return nil
				}))
			}
		}
	})
}

func TestTheEndOfATakesScopeSettles(t *testing.T) {
	boom := fmt.Errorf("boom")
	for name, c := range map[string]struct {
		end     func(ctx context.Context, cancel func()) error
		length  kvqueue.Length
		attempt int
	}{
		"well":      {func(context.Context, func()) error { return nil }, kvqueue.Length{}, 0},
		"failed":    {func(context.Context, func()) error { return boom }, kvqueue.Length{Ready: 1}, 2},
		"cancelled": {func(ctx context.Context, cancel func()) error { cancel(); return ctx.Err() }, kvqueue.Length{Ready: 1}, 1},
		"panicked":  {func(context.Context, func()) error { panic(boom) }, kvqueue.Length{Ready: 1}, 2},
		"Goexit":    {func(context.Context, func()) error { runtime.Goexit(); return nil }, kvqueue.Length{Ready: 1}, 2},
		"a child failed": {func(ctx context.Context, _ func()) error {
			async.Go(ctx, func(context.Context) error { return boom })
			return nil
		}, kvqueue.Length{Ready: 1}, 2},
	} {
		for _, take := range []string{"Take", "TryTake", "Do", "Consume"} {
			t.Run(name+" "+take, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := open(t, newStore(t), "q")
					_, err := q.Enqueue(t.Context(), []byte("a"))
					require.NoError(t, err)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var done sync.WaitGroup
					done.Go(func() {
						defer func() { _ = recover() }()
						switch take {
						case "Do":
							_ = q.Do(ctx, 1, func(ctx context.Context, _ []kvqueue.Item) error { return c.end(ctx, cancel) })
						case "Consume":
							_ = q.Consume(ctx, 1, 1, func(ctx context.Context, items []kvqueue.Item) error {
								if items[0].Attempt > 1 {
									cancel()
									<-ctx.Done()
									return ctx.Err()
								}
								time.AfterFunc(time.Second, cancel)
								return c.end(ctx, cancel)
							})
						default:
							_ = async.Scope(ctx, func(ctx context.Context) error {
								f := q.Take
								if take == "TryTake" {
									f = q.TryTake
								}
								items, err := f(ctx, 1)
								assert.NoError(t, err)
								assert.Len(t, items, 1)
								return c.end(ctx, cancel)
							})
						}
					})
					done.Wait()
					time.Sleep(time.Second)
					n, err := q.Len(t.Context())
					require.NoError(t, err)
					require.Equal(t, c.length, n)
					if c.attempt > 0 {
						require.NoError(t, q.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
							assert.Equal(t, c.attempt, items[0].Attempt)
							return nil
						}))
					}
				})
			})
		}
	}
}

// Nobody passes those that wait, not even a handle that has just begun to take.
func TestAHandleThatBeginsToTakePassesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		waits, late := open(t, kv, "q"), open(t, kv, "q")
		got := make(chan string, 2)
		var takers sync.WaitGroup
		defer takers.Wait()
		take := func(name string, q *kvqueue.Queue) {
			assert.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { got <- name; return nil }))
		}
		_, err := late.Enqueue(t.Context(), []byte("0")) // it has seen revisions long ago
		require.NoError(t, err)
		take("0", waits)
		assert.Equal(t, "0", <-got)
		takers.Go(func() { take("first", waits) })
		time.Sleep(time.Hour)
		takers.Go(func() { take("second", late) })
		go func() { _, _ = late.Enqueue(t.Context(), []byte("a")) }()
		assert.Equal(t, "first", <-got)
		_, err = late.Enqueue(t.Context(), []byte("b"))
		require.NoError(t, err)
		assert.Equal(t, "second", <-got)
	})
}

// C5: the places and a claim of a session that has ended.
func TestADeadSessionIsGivenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		dead, lives, in := open(t, net, "q", kvqueue.TTL(2*time.Second)), open(t, kv, "q"), open(t, kv, "q")
		for _, q := range []*kvqueue.Queue{dead, lives} { // so that dead is the one that assigns
			go func() {
				_ = q.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
					if q == dead {
						t.Error("the dead was served")
					}
					return nil
				})
			}()
			time.Sleep(time.Second)
		}
		net.off()
		time.Sleep(3 * time.Second) // its session has ended, and its places with it
		_, err := in.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		time.Sleep(time.Second)
		n, err := in.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, kvqueue.Length{}, n)
		results, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("kvq/q/r/"), End: []byte("kvq/q/r0")})
		require.NoError(t, err)
		assert.Empty(t, results[0].Pairs)
		require.NoError(t, dead.Close(withDeadline(t)))
		net.on()
	})
}

// It is served just before its session ends: the item goes back to its place.
func TestWhatADeadSessionWasGivenComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		dead, lives, in := open(t, net, "q", kvqueue.TTL(2*time.Second)), open(t, kv, "q"), open(t, kv, "q")
		for _, q := range []*kvqueue.Queue{lives, dead} { // so that the first assigns
			go func() {
				_ = q.Consume(t.Context(), 1, 1, func(_ context.Context, items []kvqueue.Item) error {
					if q == dead {
						t.Error("it can not have the payload")
					}
					return nil
				})
			}()
			time.Sleep(time.Second)
		}
		net.off()
		_, err := in.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		n, err := in.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, kvqueue.Length{}, n)
		assert.EqualValues(t, 1, lives.Stats().Reaped)
		require.NoError(t, dead.Close(withDeadline(t)))
		net.on()
	})
}

// withDeadline returns a context for a call that can not reach its store.
func withDeadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// C6: a producer that stalls for more than 250 ms between its look and its transaction may
// be overtaken by the floor; it tries again, and its order is kept.
func TestAStalledProducerTriesAgain(t *testing.T) {
	for _, stall := range []time.Duration{200 * time.Millisecond, 5 * time.Second} {
		t.Run(fmt.Sprint(stall), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t)
				net := newCut(kv)
				slow, q := open(t, net, "q"), open(t, kv, "q")
				_, err := slow.Enqueue(t.Context(), []byte("first"))
				require.NoError(t, err)
				sent := 0
				net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
					for _, x := range w {
						if bytes.Contains(x.Key, []byte("/d/")) {
							if sent++; sent == 1 {
								time.Sleep(stall)
							}
							break
						}
					}
					return nil
				})
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, err := slow.Enqueue(t.Context(), []byte("a"), []byte("b"))
					assert.NoError(t, err)
				}()
				// Meanwhile much goes in and out, and the floor moves.
				synctest.Wait()
				var got []string
				for i := range 400 {
					_, err := q.Enqueue(t.Context(), fmt.Append(nil, i))
					require.NoError(t, err)
					require.NoError(t, q.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
						got = append(got, string(items[0].Value))
						return nil
					}))
					time.Sleep(stall / 450)
				}
				<-done
				if stall > time.Second {
					assert.Equal(t, 2, sent, "it was refused once")
				} else {
					assert.Equal(t, 1, sent, "it was not overtaken")
				}
				got = append(got, all(t, q)...)
				assert.Len(t, got, 403)
				assert.Equal(t, 1, slices.Index(got, "b")-slices.Index(got, "a"), "its order is kept: %v", got)
				proof.Audit(t, kv, "q")
			})
		})
	}
}

// C6, C7: what a Commit adds to another queue is not put below a floor that has overtaken it.
func TestAStalledCommitAddsNothingBelowTheFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		in, to, q := open(t, net, "in"), open(t, net, "q"), open(t, kv, "q")
		_, err := in.Enqueue(t.Context(), []byte("order"))
		require.NoError(t, err)
		sent := 0
		net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
			for _, x := range w {
				if bytes.Contains(x.Key, []byte("/q/d/")) {
					if sent++; sent == 1 {
						time.Sleep(5 * time.Second)
					}
				}
			}
			return nil
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			assert.NoError(t, in.Do(context.Background(), 1, func(ctx context.Context, items []kvqueue.Item) error {
				return in.Commit(ctx, items, func(tx *kvqueue.Tx) { tx.Enqueue(to, []byte("late")) })
			}))
		}()
		synctest.Wait()
		for range 400 {
			_, err := q.Enqueue(t.Context(), []byte("x"))
			require.NoError(t, err)
			require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
			time.Sleep(10 * time.Millisecond)
		}
		<-done
		assert.Equal(t, 2, sent, "it was refused once")
		audit, err := q.Audit(t.Context())
		require.NoError(t, err)
		assert.Empty(t, audit.Faults)
		assert.Equal(t, []string{"late"}, all(t, q))
	})
}

// A handle that lives for long keeps nothing of what has ended.
func TestAHandleThatLivesForLongDoesNotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		one, two := open(t, kv, "q"), open(t, net, "q")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var all sync.WaitGroup
		collect(ctx, &all, one, 2, 2, func([]kvqueue.Item) { time.Sleep(time.Millisecond) })
		collect(ctx, &all, two, 2, 2, func([]kvqueue.Item) {})
		for i := range 2000 {
			_, err := []*kvqueue.Queue{one, two}[i%2].Enqueue(t.Context(), []byte("x"))
			require.NoError(t, err)
			if i%10 == 0 {
				time.Sleep(6 * time.Minute)
			}
			if i%100 == 0 {
				net.breakWatches(kvqueue.ErrCompacted)
			}
			if i%50 == 0 { // calls that end before there is anything
				short, cancel := context.WithTimeout(t.Context(), time.Second)
				_ = two.Do(short, 1, func(context.Context, []kvqueue.Item) error { return nil })
				cancel()
			}
		}
		time.Sleep(time.Minute)
		for _, q := range []*kvqueue.Queue{one, two} {
			s := q.Sizes()
			assert.LessOrEqual(t, s.Places, 2)
			assert.LessOrEqual(t, s.Sightings, 20)
			assert.Equal(t, 2, s.Waiters)
			assert.Zero(t, s.Held)
			assert.Zero(t, s.Arrived)
		}
		results, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("kvq/"), End: []byte("kvq0")})
		require.NoError(t, err)
		assert.Less(t, len(results[0].Pairs), 20, "nor does the store")
		stop()
		all.Wait()
	})
}
