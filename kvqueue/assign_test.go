package kvqueue_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// Handles on stores that are as slow as a disk, and show changes late, hardly ever spoil each
// other's claims: only while one acts for another that is slow.
func TestHandlesDoNotSpoilEachOthersClaims(t *testing.T) {
	for _, consumers := range []int{1, 4} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%d consumers, seed %d", consumers, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { spoilt(t, consumers, seed) })
			})
		}
	}
}

func spoilt(t *testing.T, consumers int, seed uint64) {
	const handles, items = 8, 2000
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 7))
	dice := func(n time.Duration) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(random.Int64N(int64(n)))
	}
	kv := newStore(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var queues []*kvqueue.Queue
	left := items
	for range handles {
		net := newCut(kv)
		net.delay = func() time.Duration { return time.Millisecond/2 + dice(2*time.Millisecond) }
		q := open(t, net, "q")
		queues = append(queues, q)
		collect(ctx, &all, q, consumers, 1, func([]kvqueue.Item) {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				stop()
			}
		})
	}
	time.Sleep(time.Second)
	in := open(t, kv, "q")
	for n := 0; n < items; n += 10 {
		_, err := in.Enqueue(t.Context(), numbered(10)...)
		require.NoError(t, err)
		if n < items/2 { // then they come faster than they are taken
			time.Sleep(dice(60 * time.Millisecond))
		}
	}
	all.Wait()
	conflicts := int64(0)
	for _, q := range queues {
		conflicts += q.Stats().Conflicts
	}
	t.Logf("%d of %d claims were spoilt", conflicts, items)
	assert.LessOrEqual(t, conflicts, int64(items*2/100))
}

// Who comes after the one that assigns has looked is not given what was seen: an item that came back
// before may be the first by now.
func TestWhoComesAfterTheLookIsGivenWhatIsFirstThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := &looked{cut: newCut(kv)}
		q, other := open(t, net, "q"), open(t, kv, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		got := make(chan string, 1)
		assert.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
			second, leave := context.WithCancel(ctx)
			net.then(func() { // b was seen
				leave()
				assert.NoError(t, q.Nack(ctx, nil, items...))
				go func() {
					_ = other.Do(ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
						got <- string(items[0].Value)
						return nil
					})
				}()
				time.Sleep(10 * time.Millisecond)
			})
			assert.ErrorIs(t, q.Do(second, 1, func(context.Context, []kvqueue.Item) error { return errFails }), context.Canceled)
			assert.Equal(t, "a", <-got)
			return nil
		}))
	})
}

// A looked store calls something when the first items were read.
type looked struct {
	*cut
	call func()
}

func (l *looked) then(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.call = f
}

func (l *looked) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	results, rev, err := l.cut.Read(ctx, ranges...)
	if bytes.Contains(ranges[len(ranges)-1].Begin, []byte("/q/q/")) {
		l.called()
	}
	return results, rev, err
}

func (l *looked) called() {
	l.mu.Lock()
	f := l.call
	l.call = nil
	l.mu.Unlock()
	if f != nil {
		f()
	}
}

// twoMembers opens two handles that have waited for items, of which the first assigns.
func twoMembers(t *testing.T, nets ...*cut) (first, second *kvqueue.Queue) {
	for i, q := range []**kvqueue.Queue{&first, &second} {
		*q = open(t, nets[i], "q", kvqueue.TTL(time.Hour))
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		assert.ErrorIs(t, (*q).Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil }), context.DeadlineExceeded)
	}
	return first, second
}

// puts counts how often keys of a kind are put and deleted by a handle.
func puts(net *cut, kind string) *atomic.Int64 {
	n := new(atomic.Int64)
	net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
		n.Add(int64(count(w, kind, false) + count(w, kind, true)))
		return nil
	})
	return n
}

// A consumer whose items another assigns asks for the next by its acknowledgement, and writes nothing
// else.
func TestAnAcknowledgementAsksForTheNextItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		nets := []*cut{newCut(kv), newCut(kv)}
		first, second := twoMembers(t, nets...)
		claims, places := puts(nets[0], "/w/"), puts(nets[1], "/r/")
		const items = 50
		_, err := first.Enqueue(t.Context(), numbered(items)...)
		require.NoError(t, err)
		assert.Len(t, drain(t.Context(), second, 2, items), items)
		assert.EqualValues(t, items, claims.Load(), "the first has claimed all of them")
		time.Sleep(time.Second)
		assert.Less(t, places.Load(), int64(items/2), "the second says what it wants as it begins and as it ends, and not for each item")
		assert.Zero(t, keys(t, kv, "r"))
	})
}

// A caller that does not come back is given nothing any more: its acknowledgement has said so.
func TestNoItemComesForACallerThatIsDone(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error{
		"the end":   func(context.Context, *kvqueue.Queue, []kvqueue.Item) error { return nil },
		"a failure": func(context.Context, *kvqueue.Queue, []kvqueue.Item) error { return errFails },
		"Ack":       func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error { return q.Ack(ctx, items...) },
		"Nack": func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error {
			return q.Nack(ctx, nil, items...)
		},
		"Commit": func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error {
			return q.Commit(ctx, items, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t)
				nets := []*cut{newCut(kv), newCut(kv)}
				first, second := twoMembers(t, nets...)
				_, err := first.Enqueue(t.Context(), []byte("a"), []byte("b"))
				require.NoError(t, err)
				_ = second.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error { return end(ctx, second, items) })
				time.Sleep(time.Minute)
				assert.EqualValues(t, 1, second.Stats().Claimed)
			})
		})
	}
}

// The one that assigns stands still: each of the others claims for itself, after a while and in turn: they do not send at one
// instant what spoils each other's transactions, which take a while here.
func TestWhoStandsStillDoesNotStopTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		nets := []*cut{newCut(kv), newCut(kv), newCut(kv)}
		_, second := twoMembers(t, nets[:2]...)
		third := open(t, nets[2], "q")
		for _, net := range nets[1:] {
			net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error { time.Sleep(5 * time.Millisecond); return nil })
		}
		nets[0].off()
		defer nets[0].on()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var all sync.WaitGroup
		var got atomic.Int64
		for _, q := range []*kvqueue.Queue{second, third} {
			collect(ctx, &all, q, 2, 1, func([]kvqueue.Item) { got.Add(1) })
		}
		time.Sleep(time.Second)
		const items = 40
		begin := time.Now()
		_, err := third.Enqueue(t.Context(), numbered(items)...)
		require.NoError(t, err)
		for got.Load() < items {
			time.Sleep(time.Millisecond)
		}
		assert.Less(t, time.Since(begin), items*150*time.Millisecond)
		assert.LessOrEqual(t, second.Stats().Conflicts+third.Stats().Conflicts, int64(items/5))
		stop()
		all.Wait()
	})
}

// The one that assigns ends: the next oldest does so then, and has counted what the others have.
func TestTheNextOldestAssignsWhenTheOldestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		nets := []*cut{newCut(kv), newCut(kv)}
		first, second := twoMembers(t, nets...)
		third := open(t, kv, "q")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		working, got := make(chan struct{}), make(chan struct{}, 10)
		var all sync.WaitGroup
		all.Go(func() {
			_ = third.Consume(ctx, 2, 1, func(_ context.Context, items []kvqueue.Item) error {
				got <- struct{}{}
				<-working
				return nil
			})
		})
		_, err := second.Enqueue(t.Context(), numbered(2)...)
		require.NoError(t, err)
		<-got
		<-got
		require.NoError(t, first.Close(t.Context()))
		time.Sleep(time.Second)
		claims := puts(nets[1], "/w/")
		_, err = second.Enqueue(t.Context(), numbered(2)...)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		assert.Zero(t, claims.Load(), "the third has as much as it wants")
		close(working)
		<-got
		<-got
		synctest.Wait()
		assert.EqualValues(t, 2, claims.Load(), "the second has claimed both")
		assert.Zero(t, second.Stats().Conflicts)
		stop()
		all.Wait()
	})
}

// Only the handle that assigns watches the claims of all.
func TestOnlyTheOneThatAssignsWatchesAllClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		var watchers [3]atomic.Int64 // how many watch all claims
		queues := make([]*kvqueue.Queue, len(watchers))
		for i := range queues {
			queues[i] = open(t, &watched{kv, &watchers[i]}, "q")
			go func() {
				_ = queues[i].Consume(t.Context(), 1, 1, func(context.Context, []kvqueue.Item) error { return nil })
			}()
			time.Sleep(time.Second)
		}
		assert.Equal(t, []int64{1, 0, 0}, []int64{watchers[0].Load(), watchers[1].Load(), watchers[2].Load()})
		require.NoError(t, queues[0].Close(t.Context()))
		time.Sleep(time.Second)
		assert.Equal(t, []int64{0, 1, 0}, []int64{watchers[0].Load(), watchers[1].Load(), watchers[2].Load()})
	})
}

// A watched store counts the watches of all claims.
type watched struct {
	kvqueue.KV
	all *atomic.Int64
}

func (w *watched) Watch(ctx context.Context, after kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	return func(yield func(kvqueue.Event, error) bool) {
		if slices.ContainsFunc(prefixes, func(p []byte) bool { return string(p) == "kvq/q/w/" }) {
			w.all.Add(1)
			defer w.all.Add(-1)
		}
		w.KV.Watch(ctx, after, prefixes...)(yield)
	}
}

// The answer to an assignment comes after the watch has shown that the claim has ended: the place is free.
func TestAPlaceIsFreeThoughTheAnswerIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		nets := []*cut{newCut(kv), newCut(kv)}
		late := &tardy{cut: nets[0], then: func() { time.Sleep(20 * time.Millisecond) }}
		first := open(t, late, "q")
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		assert.ErrorIs(t, first.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil }), context.DeadlineExceeded)
		second := open(t, nets[1], "q")
		own := puts(nets[1], "/w/")
		const items = 20
		_, err := first.Enqueue(t.Context(), numbered(items)...)
		require.NoError(t, err)
		assert.Len(t, drain(t.Context(), second, 1, items), items)
		assert.EqualValues(t, items, own.Load(), "the second has ended all of them, and claimed none")
	})
}

// An item is claimed and acknowledged between the two reads of a list: it is handed over once, though
// the watch that follows shows its claim.
func TestWhatComesAndGoesWhileItIsListedIsHandedOverOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := &halfListed{looked{cut: newCut(newStore(t))}}
		q := open(t, net, "q")
		go func() { _ = q.Consume(t.Context(), 2, 1, func(context.Context, []kvqueue.Item) error { return nil }) }()
		time.Sleep(10 * time.Second)
		net.then(func() {
			_, err := q.Enqueue(t.Context(), []byte("a"))
			assert.NoError(t, err)
			time.Sleep(10 * time.Second) // it looks without having been told
			assert.EqualValues(t, 1, q.Stats().Acked)
		})
		net.breakWatches(kvqueue.ErrCompacted)
		time.Sleep(30 * time.Second)
		assert.EqualValues(t, 1, q.Stats().Claimed)
	})
}

// A halfListed store calls something after the first read of a list.
type halfListed struct{ looked }

func (l *halfListed) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	results, rev, err := l.cut.Read(ctx, ranges...)
	if bytes.Contains(ranges[0].Begin, []byte("/r/")) {
		l.called()
	}
	return results, rev, err
}
