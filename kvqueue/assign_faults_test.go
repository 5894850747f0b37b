package kvqueue_test

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
)

// waits has a queue wait for an item until the returned function is called.
func waits(t *testing.T, q *kvqueue.Queue) (leave func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var call sync.WaitGroup
	call.Go(func() {
		assert.ErrorIs(t, q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return errFails }), context.Canceled)
	})
	time.Sleep(time.Second)
	return func() { cancel(); call.Wait(); time.Sleep(time.Second) }
}

// On a full store an acknowledgement is done also by a handle that has fewer places after it: it
// says so later.
func TestAHandleWithPlacesAcknowledgesOnAFullStore(t *testing.T) {
	for name, settle := range map[string]func(ctx context.Context, q *kvqueue.Queue, item kvqueue.Item) error{
		"Ack": func(ctx context.Context, q *kvqueue.Queue, item kvqueue.Item) error { return q.Ack(ctx, item) },
		"Commit": func(ctx context.Context, q *kvqueue.Queue, item kvqueue.Item) error {
			return q.Commit(ctx, []kvqueue.Item{item}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := &full{KV: newStore(t)}
				first, second := open(t, kv, "q"), open(t, kv, "q")
				waits(t, first)()
				_, err := first.Enqueue(t.Context(), numbered(3)...)
				require.NoError(t, err)
				require.NoError(t, second.Do(t.Context(), 3, func(ctx context.Context, items []kvqueue.Item) error {
					require.Len(t, items, 3)
					time.Sleep(time.Second)
					kv.is.Store(true)
					for _, item := range items {
						assert.NoError(t, settle(ctx, second, item))
					}
					return nil
				}))
				assert.EqualValues(t, 3, second.Stats().Acked)
				kv.is.Store(false)
			})
		})
	}
}

// A mute store has watches that say nothing from some time on.
type mute struct {
	kvqueue.KV
	is atomic.Bool
}

func (m *mute) Watch(ctx context.Context, after kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	return func(yield func(kvqueue.Event, error) bool) {
		for e, err := range m.KV.Watch(ctx, after, prefixes...) {
			if !m.is.Load() && !yield(e, err) {
				return
			}
		}
	}
}

// The watch of the one that assigns says nothing. It does not hear that another wants nothing any
// more, and still claims for its own callers.
func TestTheOneThatAssignsFindsOutWhoWantsNothing(t *testing.T) {
	for name, leave := range map[string]func(second *kvqueue.Queue, leave func()){
		"the caller leaves":    func(_ *kvqueue.Queue, leave func()) { leave() },
		"the handle is closed": func(second *kvqueue.Queue, leave func()) { leave(); _ = second.Close(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t)
				silent := &mute{KV: kv}
				first, second := open(t, silent, "q", kvqueue.TTL(time.Hour)), open(t, kv, "q")
				waits(t, first)()
				goes := waits(t, second)
				silent.is.Store(true)
				leave(second, goes)
				_, err := first.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				assert.NoError(t, first.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil }))
				assert.LessOrEqual(t, first.Stats().Conflicts, int64(2))
			})
		})
	}
}

// The answer to how many places a handle wants was lost, and the transaction is done late, when the
// handle has said something else: it says that again.
func TestPlacesThatComeLateArePutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		nets := []*cut{newCut(kv), newCut(kv)}
		first, second := twoMembers(t, nets...)
		time.Sleep(time.Second)
		var late func()
		nets[1].intercept(func(g []kvqueue.Guard, w []kvqueue.Write) error {
			if late == nil && count(w, "/r/", false) > 0 {
				w := withInner(w)
				late = func() {
					_, err := kv.Commit(context.Background(), g, w)
					assert.NoError(t, err)
				}
				return kvqueue.ErrUnknown
			}
			return nil
		})
		waits(t, second)()
		assert.Zero(t, keys(t, kv, "r"))
		late()
		time.Sleep(10 * time.Second)
		assert.Zero(t, keys(t, kv, "r"), "nobody waits")
		claims := puts(nets[0], "/w/")
		_, err := first.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		assert.Zero(t, claims.Load())
	})
}

// The places of a handle have gone from the store, by a transaction that was late or behind its back: it
// puts them there again, so that it need not claim for itself.
func TestPlacesThatHaveGoneArePutAgain(t *testing.T) {
	for _, shown := range []string{"watch", "list"} {
		t.Run(shown, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t)
				nets := []*cut{newCut(kv), newCut(kv)}
				_, second := twoMembers(t, nets...)
				time.Sleep(time.Second)
				defer waits(t, second)()
				results, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("kvq/q/r/"), End: []byte("kvq/q/r0")})
				require.NoError(t, err)
				require.Len(t, results[0].Pairs, 1)
				if shown == "list" {
					nets[1].off()
				}
				_, err = kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: results[0].Pairs[0].Key, Delete: true}})
				require.NoError(t, err)
				if shown == "list" {
					nets[1].breakWatches(kvqueue.ErrCompacted)
					time.Sleep(time.Second)
					nets[1].on()
				}
				time.Sleep(10 * time.Second)
				assert.Equal(t, 1, keys(t, kv, "r"))
			})
		})
	}
}

// A handle that has waited, and does not any more, takes no turn when the one that assigns stands still.
func TestWhoDoesNotWaitTakesNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		first := open(t, net, "q", kvqueue.TTL(time.Hour))
		waits(t, first)()
		for range 20 {
			waits(t, open(t, kv, "q"))()
		}
		last, took := open(t, kv, "q"), make(chan time.Time, 1)
		go func() {
			_ = last.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { took <- time.Now(); return nil })
		}()
		time.Sleep(time.Second)
		net.off()
		defer net.on()
		begin := time.Now()
		_, err := last.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		assert.LessOrEqual(t, (<-took).Sub(begin), 200*time.Millisecond)
	})
}

// A lingering store ends no session before it is told to.
type lingering struct {
	*cut
	until chan struct{}
}

type lingers struct {
	kvqueue.Session
	until chan struct{}
}

func (l lingering) Session(ctx context.Context, ttl time.Duration) (kvqueue.Session, error) {
	s, err := l.KV.Session(ctx, ttl)
	return lingers{s, l.until}, err
}

func (l lingering) Commit(ctx context.Context, g []kvqueue.Guard, w []kvqueue.Write) (kvqueue.Rev, error) {
	own := slices.Clone(w)
	for i := range own {
		if s, ok := own[i].Session.(lingers); ok {
			own[i].Session = s.Session
		}
	}
	return l.cut.Commit(ctx, g, own)
}

func (s lingers) End(ctx context.Context) error { <-s.until; return s.Session.End(ctx) }

// A handle is closed while an acknowledgement that lowers its places is on its way. It has none after
// that: nothing comes for a handle that is going, and no attempt is spent.
func TestAHandleThatIsClosedHasNoPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := lingering{newCut(kv), make(chan struct{})}
		first := open(t, kv, "q")
		waits(t, first)()
		second, err := kvqueue.Open(t.Context(), net, "q")
		require.NoError(t, err)
		_, err = first.Enqueue(t.Context(), numbered(3)...)
		require.NoError(t, err)
		settling, settle := make(chan struct{}), make(chan struct{})
		var call sync.WaitGroup
		call.Go(func() {
			_ = second.Do(t.Context(), 3, func(ctx context.Context, items []kvqueue.Item) error {
				time.Sleep(time.Second) // it has said that it has 3 places
				net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
					if slices.ContainsFunc(w, endsClaim) {
						net.intercept(nil)
						close(settling)
						<-settle
					}
					return nil
				})
				_ = second.Ack(ctx, items[0])
				<-ctx.Done()
				return nil
			})
		})
		<-settling
		closed := make(chan error)
		go func() { closed <- second.Close(t.Context()) }()
		time.Sleep(500 * time.Millisecond)
		assert.Zero(t, keys(t, kv, "r"))
		close(settle)
		time.Sleep(500 * time.Millisecond)
		assert.Zero(t, keys(t, kv, "r"))
		close(net.until)
		assert.NoError(t, <-closed)
		call.Wait()
	})
}

// A slowWatch shows one change after another, or those of each prefix for itself and what is wanted last,
// as etcd may.
type slowWatch struct {
	kvqueue.KV
	apart bool
}

func (s slowWatch) Watch(ctx context.Context, after kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	if !s.apart {
		return s.one(ctx, after, time.Millisecond, prefixes...)
	}
	return func(yield func(kvqueue.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var watches sync.WaitGroup
		defer watches.Wait()
		defer cancel()
		events := make(chan kvqueue.Event)
		for _, p := range prefixes {
			delay := time.Duration(0)
			if strings.HasSuffix(string(p), "/r/") {
				delay = 10 * time.Millisecond
			}
			watches.Go(func() {
				for e := range s.one(ctx, after, delay, p) {
					select {
					case events <- e:
					case <-ctx.Done():
					}
				}
			})
		}
		for {
			select {
			case e := <-events:
				if !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (s slowWatch) one(ctx context.Context, after kvqueue.Rev, delay time.Duration, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	return func(yield func(kvqueue.Event, error) bool) {
		for e, err := range s.KV.Watch(ctx, after, prefixes...) {
			if time.Sleep(delay); !yield(e, err) {
				return
			}
		}
	}
}

// A handle has two callers, one of which is done, and there is an item for a third. It may come for the one that has gone, until
// the one that assigns has seen that the handle wants less: as it goes back it asks for no other.
func TestNoItemComesAgainAndAgainForACallerThatHasGone(t *testing.T) {
	for _, apart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			kv := newStore(t)
			net := newCut(kv)
			net.delay = func() time.Duration { return 5 * time.Millisecond }
			first, second := open(t, slowWatch{kv, apart}, "q"), open(t, net, "q")
			waits(t, first)()
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			var calls sync.WaitGroup
			for _, takes := range []time.Duration{10 * time.Second, 30 * time.Second} {
				calls.Go(func() {
					assert.NoError(t, second.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { time.Sleep(takes); return nil }))
				})
			}
			time.Sleep(time.Second)
			_, err := first.Enqueue(t.Context(), numbered(3)...)
			require.NoError(t, err)
			calls.Wait()
			time.Sleep(time.Second)
			assert.LessOrEqual(t, second.Stats().Claimed, int64(4))
			assert.EqualValues(t, 2, second.Stats().Acked)
		})
	}
}

// A handle whose caller has got fewer items than it would take waits again before it could say that it wanted no more. It is
// given the next items as before: the one that assigns has noted that it wants fewer.
func TestACallerThatWaitsAgainAtOnceIsGivenTheNextItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		first, second, in := open(t, kv, "q"), open(t, net, "q"), open(t, kv, "q")
		waits(t, first)()
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan time.Duration, 1)
		var began time.Time
		var consumer sync.WaitGroup
		consumer.Go(func() {
			assert.ErrorIs(t, second.Consume(ctx, 1, 10, func(ctx context.Context, _ []kvqueue.Item) error {
				got <- time.Since(began)
				return async.Sleep(ctx, time.Millisecond)
			}), context.Canceled)
		})
		time.Sleep(time.Second)
		net.intercept(func(_ []kvqueue.Guard, writes []kvqueue.Write) error {
			if w := writes[0]; bytes.Contains(w.Key, []byte("/r/")) && bytes.Equal(w.Value, []byte{1, 10}) {
				time.Sleep(5 * time.Millisecond)
				return kvqueue.ErrConflict
			}
			return nil
		})
		for range 5 {
			began = time.Now()
			_, err := in.Enqueue(t.Context(), []byte("a"))
			require.NoError(t, err)
			assert.Less(t, <-got, 10*time.Millisecond)
			time.Sleep(time.Second)
		}
		net.intercept(nil)
		cancel()
		consumer.Wait()
	})
}
