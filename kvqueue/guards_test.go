package kvqueue_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
)

// The tests of the guards of each transaction: something happens between the look and the
// transaction.

// before has f called once, before a transaction that puts a key of a kind.
func before(net *cut, kind string, f func()) {
	var called atomic.Bool
	net.intercept(func(_ []kvqueue.Guard, writes []kvqueue.Write) error {
		if slices.ContainsFunc(writes, func(w kvqueue.Write) bool { return !w.Delete && bytes.Contains(w.Key, []byte(kind)) }) &&
			called.CompareAndSwap(false, true) {
			f()
		}
		return nil
	})
}

// The session ends, and all that it had is given back, before its claim comes.
func TestASessionThatHasEndedClaimsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		late, other := open(t, net, "q"), open(t, kv, "q")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = other.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil }) }()
		synctest.Wait()
		stop()
		time.Sleep(time.Second)
		_, err := late.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		before(net, "/w/", func() { net.endSession(); time.Sleep(time.Second) })
		require.NoError(t, late.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
			assert.Equal(t, 1, items[0].Attempt, "it was not claimed before")
			return nil
		}))
		n, err := other.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, kvqueue.Length{}, n)
	})
}

// The session has ended, and nobody has given back yet what it had.
func TestASessionThatHasEndedSettlesNothing(t *testing.T) {
	for name, settle := range map[string]func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error{
		"Ack": func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error { return q.Ack(ctx, items...) },
		"Nack": func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error {
			return q.Nack(ctx, errFails, items...)
		},
		"Commit": func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error {
			return q.Commit(ctx, items, nil)
		},
		"the end": func(context.Context, *kvqueue.Queue, []kvqueue.Item) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newCut(newStore(t))
				q := open(t, net, "q")
				_, err := q.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				err = q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
					once := false
					net.intercept(func(_ []kvqueue.Guard, writes []kvqueue.Write) error {
						if !once && slices.ContainsFunc(writes, func(w kvqueue.Write) bool { return w.Delete && bytes.Contains(w.Key, []byte("/w/")) }) {
							once = true
							net.endSession()
						}
						return nil
					})
					if err := settle(ctx, q, items); name != "the end" {
						assert.ErrorIs(t, err, kvqueue.ErrLost)
					}
					return nil
				})
				assert.ErrorIs(t, err, kvqueue.ErrLost)
				require.NoError(t, q.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
					assert.Equal(t, 2, items[0].Attempt)
					return nil
				}))
			})
		})
	}
}

// It wants nothing any more, before another assigns an item to it.
func TestWhoWantsNothingAnyMoreIsGivenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		first, second, in := open(t, net, "q"), open(t, kv, "q"), open(t, kv, "q")
		go func() { _ = first.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }) }()
		time.Sleep(time.Second)
		ctx, withdraw := context.WithCancel(t.Context())
		go func() { _ = second.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil }) }()
		time.Sleep(time.Second)
		before(net, "/w/", func() { withdraw(); time.Sleep(10 * time.Millisecond) })
		_, err := in.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		time.Sleep(time.Second)
		assert.Zero(t, second.Stats().Claimed)
		assert.EqualValues(t, 1, first.Stats().Claimed)
		assert.Equal(t, []string{"b"}, all(t, in))
	})
}

// A session seems to have ended, and has not: what it has is not given back.
func TestNothingOfASessionThatLivesIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		q, other := open(t, kv, "q"), open(t, net, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		lives := make(chan struct{}) // closed when it is to be seen that the session lives
		net.intercept(func(guards []kvqueue.Guard, _ []kvqueue.Write) error {
			if reaps(guards) {
				<-lives
			}
			return nil
		})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		assert.ErrorIs(t, q.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
			go func() { _ = other.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil }) }()
			time.Sleep(time.Second)
			results, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("kvq/q/l/"), End: []byte("kvq/q/l0")})
			require.NoError(t, err)
			blink := func(key []byte, value []byte) {
				_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: key, Delete: true}})
				require.NoError(t, err)
				_, err = kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: key, Value: value}})
				require.NoError(t, err)
			}
			claims, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("kvq/q/w/"), End: []byte("kvq/q/w0")})
			require.NoError(t, err)
			require.Len(t, claims[0].Pairs, 1)
			for _, p := range results[0].Pairs { // that of q alone: a member ends when it sees the end of its own
				id := p.Key[len(p.Key)-16:]
				if bytes.Contains(claims[0].Pairs[0].Key, id) {
					blink(p.Key, p.Value)
				}
			}
			synctest.Wait() // other has seen the end that was none, and is about to give the item back
			close(lives)
			time.Sleep(200 * time.Millisecond)
			n, err := other.Len(t.Context())
			require.NoError(t, err)
			assert.Equal(t, kvqueue.Length{Claimed: 1}, n)
			assert.Zero(t, other.Stats().Reaped)
			return nil
		}), kvqueue.ErrLost, "q has seen that, too")
	})
}

// A session ends between the look of the one that assigns and its transaction.
func TestASessionThatEndsIsGivenNothing(t *testing.T) {
	for _, ends := range []string{"taker", "assigner"} {
		t.Run(ends, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t)
				nets := map[string]*cut{"assigner": newCut(kv), "taker": newCut(kv)}
				in, got := open(t, kv, "q"), make(chan int, 4)
				for _, name := range []string{"assigner", "taker"} { // the first assigns
					q := open(t, nets[name], "q")
					go func() {
						_ = q.Consume(t.Context(), 1, 1, func(_ context.Context, items []kvqueue.Item) error {
							got <- items[0].Attempt
							return nil
						})
					}()
					time.Sleep(2 * time.Second)
				}
				a := proof.NewAuditor("q")
				following, unfollow := context.WithCancel(t.Context())
				followed := make(chan struct{})
				go func() { defer close(followed); a.Follow(following, proof.Always(kv)) }()
				synctest.Wait()
				before(nets["assigner"], "/w/", nets[ends].endSession)
				_, err := in.Enqueue(t.Context(), []byte("a"), []byte("b"))
				require.NoError(t, err)
				assert.Equal(t, 1, <-got, "it was not claimed before")
				assert.Equal(t, 1, <-got)
				time.Sleep(time.Second)
				require.NoError(t, a.Settle(t.Context(), kv))
				unfollow()
				<-followed
				a.Report(t)
			})
		})
	}
}

// A handle lists what it has, as its watch has broken. An item that it claims after the list was read,
// and before it was taken in, is handed over once.
func TestWhatIsClaimedWhileAListIsOnItsWayIsHandedOverOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := &listed{cut: newCut(kv)}
		q := open(t, net, "q")
		var mu sync.Mutex
		fences := map[kvqueue.Rev]int{}
		claimed := make(chan struct{}, 2)
		consume := func() {
			_ = q.Consume(t.Context(), 2, 1, func(ctx context.Context, items []kvqueue.Item) error {
				mu.Lock()
				fences[items[0].Fence]++
				mu.Unlock()
				claimed <- struct{}{}
				<-ctx.Done() // it is claimed all the while
				return nil
			})
		}
		go consume()
		time.Sleep(10 * time.Second)
		net.then(func() {
			_, err := q.Enqueue(t.Context(), []byte("a"))
			assert.NoError(t, err)
			<-claimed
		})
		net.breakWatches(kvqueue.ErrCompacted)
		time.Sleep(30 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		assert.Len(t, fences, 1)
		for fence, times := range fences {
			assert.Equal(t, 1, times, fence)
		}
	})
}

// A listed store calls something when a list of what a handle has was read.
type listed struct {
	*cut
	call func()
}

func (l *listed) then(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.call = f
}

func (l *listed) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	results, rev, err := l.cut.Read(ctx, ranges...)
	if bytes.Contains(ranges[len(ranges)-1].Begin, []byte("/w/")) && ranges[len(ranges)-1].End != nil {
		l.mu.Lock()
		f := l.call
		l.call = nil
		l.mu.Unlock()
		if f != nil {
			f()
		}
	}
	return results, rev, err
}

// The answer to a claim is late, and meanwhile a watch, or a list, shows the claim: it is handed
// over once.
func TestAClaimThatIsShownBeforeItsAnswerIsHandedOverOnce(t *testing.T) {
	for _, shownBy := range []string{"watch", "list"} {
		t.Run(shownBy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := &tardy{cut: newCut(newStore(t))}
				net.then = func() {
					if shownBy == "list" {
						net.breakWatches(kvqueue.ErrCompacted)
					}
					time.Sleep(time.Second)
				}
				q := open(t, net, "q")
				for range 2 {
					go func() {
						_ = q.Consume(t.Context(), 1, 1, func(ctx context.Context, items []kvqueue.Item) error {
							<-ctx.Done()
							return nil
						})
					}()
				}
				time.Sleep(10 * time.Second)
				_, err := q.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				time.Sleep(10 * time.Second)
				assert.EqualValues(t, 1, q.Stats().Claimed)
			})
		})
	}
}

// A tardy store does something between a transaction that claims and its answer.
type tardy struct {
	*cut
	then func()
}

func (s *tardy) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	rev, err := s.cut.Commit(ctx, guards, writes)
	if err == nil && slices.ContainsFunc(writes, func(w kvqueue.Write) bool { return !w.Delete && bytes.Contains(w.Key, []byte("/w/")) }) {
		s.then()
	}
	return rev, err
}

// A handle has had an item, and tries to claim it again. The watch has not shown the end of the
// first claim, and breaks; the list shows that there is none. When the try has come to nothing the
// handle keeps nothing of the item.
func TestNothingIsKeptOfAClaimWhoseEndOnlyAListShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		lag := &lagging{KV: net, lag: 24 * time.Hour, breaks: make(chan struct{})}
		q, other := open(t, lag, "q"), open(t, kv, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		claim := func(q *kvqueue.Queue, why error) {
			assert.ErrorIs(t, q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
				return q.Nack(ctx, why, items...)
			}), nil)
		}
		claim(q, nil) // and it goes back
		net.intercept(func(_ []kvqueue.Guard, writes []kvqueue.Write) error {
			if slices.ContainsFunc(writes, func(w kvqueue.Write) bool { return !w.Delete && bytes.Contains(w.Key, []byte("/w/")) }) {
				net.intercept(nil)
				require.NoError(t, other.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
				lag.broken()
				time.Sleep(time.Second)
			}
			return nil
		})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		assert.ErrorIs(t, q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil }), context.DeadlineExceeded)
		assert.Zero(t, q.Sizes().Held)
	})
}

// A handle has an item, and lists what it has again and again: it is handed over once.
func TestWhatIsListedAgainIsHandedOverOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newCut(newStore(t))
		q := open(t, net, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		go func() {
			_ = q.Consume(t.Context(), 2, 1, func(ctx context.Context, _ []kvqueue.Item) error { <-ctx.Done(); return nil })
		}()
		for range 5 {
			time.Sleep(10 * time.Second)
			net.breakWatches(kvqueue.ErrCompacted)
		}
		assert.EqualValues(t, 1, q.Stats().Claimed)
	})
}

// Another claims two items for a handle in one transaction, while the handle tries to claim one
// of them itself, and its watch breaks: both are handed over.
func TestItemsThatAListShowsDuringATryAreHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		q := open(t, net, "q")
		pos, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		before(net, "/w/", func() {
			results, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("kvq/q/l/"), End: []byte("kvq/q/l0")})
			require.NoError(t, err)
			id := results[0].Pairs[0].Key[len("kvq/q/l/"):]
			var moves []kvqueue.Write
			for _, k := range []kvqueue.Key{pos.First, pos.Last} {
				moves = append(moves, kvqueue.Write{Key: append([]byte("kvq/q/q/"), k[:]...), Delete: true},
					kvqueue.Write{Key: append(fmt.Appendf(nil, "kvq/q/w/%s/", id), k[:]...), Value: []byte{0, 0, 1, 2}})
			}
			_, err = kv.Commit(t.Context(), nil, moves)
			require.NoError(t, err)
			net.breakWatches(kvqueue.ErrCompacted)
			time.Sleep(time.Second)
		})
		got := make(chan string, 2)
		go func() {
			_ = q.Consume(t.Context(), 1, 1, func(_ context.Context, items []kvqueue.Item) error {
				got <- string(items[0].Value)
				return nil
			})
		}()
		time.Sleep(time.Minute)
		assert.Len(t, got, 2)
	})
}
