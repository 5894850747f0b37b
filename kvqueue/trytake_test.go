package kvqueue_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// A lateWatch shows changes late.
type lateWatch struct {
	kvqueue.KV
	by time.Duration
}

func (l lateWatch) Watch(ctx context.Context, from kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	return func(yield func(kvqueue.Event, error) bool) {
		for e, err := range l.KV.Watch(ctx, from, prefixes...) {
			if async.Sleep(ctx, l.by) != nil || !yield(e, err) {
				return
			}
		}
	}
}

// takeNow takes what is ready, acknowledges it, and returns how many items it was.
func takeNow(t *testing.T, q *kvqueue.Queue, most int) (n int) {
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		items, err := q.TryTake(ctx, most)
		n = len(items)
		return err
	}))
	return n
}

// Items that another has assigned to a handle, and that its watch has not shown yet, are not ready any more: TryTake
// looks for those as well before it says that there is nothing.
func TestTryTakeGetsWhatAnotherHasAssignedThoughTheWatchIsLate(t *testing.T) {
	for _, late := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t)
				assigns := open(t, kv, "q")
				assert.Zero(t, takeNow(t, assigns, 1), "it is the first")
				given := open(t, lateWatch{kv, late}, "q")
				assert.Zero(t, takeNow(t, given, 1))
				for i := range 20 {
					_, err := assigns.Enqueue(t.Context(), []byte("a"), []byte("b"), []byte("c"))
					require.NoError(t, err)
					got := takeNow(t, given, 2)
					assert.NotZero(t, got, "round %d", i)
					for got < 3 {
						n := takeNow(t, given, 3)
						require.NotZero(t, n, "round %d: after %d of 3", i, got)
						got += n
					}
					assert.Zero(t, takeNow(t, given, 1), "round %d: they are acknowledged", i)
				}
			})
		})
	}
}

// A hooked store calls before with the number of each read that begins with the key.
type hooked struct {
	kvqueue.KV
	mu     sync.Mutex
	prefix string
	n      int
	before func(n int)
}

func (h *hooked) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	for _, r := range ranges {
		if bytes.HasPrefix(r.Begin, []byte(h.prefix)) {
			h.mu.Lock()
			f := h.before
			if f != nil {
				h.n++
			}
			n := h.n
			h.mu.Unlock()
			if f != nil {
				f(n)
			}
			break
		}
	}
	return h.KV.Read(ctx, ranges...)
}

// One item is ready. The one that assigns gives it to the handle whose TryTake runs, just before its nth read.
func tryTakeWhileAssigned(t *testing.T, prefix string, n int, options ...kvqueue.AddOption) (got int, hit bool) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		assigns := open(t, net, "q")
		require.Zero(t, takeNow(t, assigns, 1))
		h := &hooked{KV: kv, prefix: prefix}
		given := open(t, h, "q")
		require.Zero(t, takeNow(t, given, 1))
		_, err := assigns.Add(t.Context(), []byte("a"), options...)
		require.NoError(t, err)
		release := make(chan struct{})
		var once sync.Once
		free := func() { once.Do(func() { close(release) }) }
		net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
			for _, w := range w {
				if bytes.HasPrefix(w.Key, []byte("kvq/q/w/")) {
					<-release
				}
			}
			return nil
		})
		h.mu.Lock()
		h.before = func(i int) {
			if i == n {
				hit = true
				free()
				time.Sleep(time.Millisecond)
			}
		}
		h.mu.Unlock()
		got = takeNow(t, given, 1)
		free()
		time.Sleep(time.Second)
	})
	return got, hit
}

// The look with which a handle claims for itself misses nothing that was assigned to it.
func TestTryTakeGetsWhatIsAssignedBeforeItClaimsForItself(t *testing.T) {
	for n := 1; n < 40; n++ {
		got, hit := tryTakeWhileAssigned(t, "kvq/q/w/", n)
		if !hit {
			t.Log("reads:", n-1)
			break
		}
		assert.Equal(t, 1, got, "assigned before read %d", n)
	}
}

// The head of a group is read at a later revision than the rest of a look.
func TestTryTakeGetsAnItemOfAGroupThatIsAssignedWhileItLooks(t *testing.T) {
	for n := 1; n < 40; n++ {
		got, hit := tryTakeWhileAssigned(t, "kvq/q/g/", n, kvqueue.Group("g"))
		if !hit {
			t.Log("reads:", n-1)
			break
		}
		assert.Equal(t, 1, got, "assigned before read %d", n)
	}
}

// The answer to a claim was lost, and the watch is late.
func TestTryTakeGetsWhatWasClaimedThoughTheAnswerWasLost(t *testing.T) {
	for _, late := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t, faults(func(_ []kvqueue.Guard, w []kvqueue.Write) memkv.Fault {
					for _, w := range w {
						if bytes.HasPrefix(w.Key, []byte("kvq/q/w/")) && !w.Delete {
							return memkv.Unanswered
						}
					}
					return memkv.None
				}))
				q := open(t, lateWatch{kv, late}, "q")
				require.Zero(t, takeNow(t, q, 1))
				_, err := q.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				time.Sleep(time.Second)
				assert.Equal(t, 1, takeNow(t, q, 1))
			})
		})
	}
}

// The same on a store that is an Updater.
func TestTryTakeGetsWhatWasClaimedByAnUpdateWhoseAnswerWasLost(t *testing.T) {
	for _, most := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			kv := newStore(t)
			u := &updater{lateWatch{kv, 300 * time.Millisecond}, func() error { return nil }}
			q, in := open(t, u, "q"), open(t, kv, "q")
			require.Zero(t, takeNow(t, q, 1))
			_, err := in.Enqueue(t.Context(), []byte("a"))
			require.NoError(t, err)
			time.Sleep(time.Second)
			u.after = func() error { u.after = func() error { return nil }; return kvqueue.ErrUnknown }
			assert.Equal(t, 1, takeNow(t, q, most), "most %d", most)
		})
	}
}

// One item is ready, and TryTake takes it, however slow the network is.
func TestTryTakeTakesWhatIsReadyOverASlowNetwork(t *testing.T) {
	for name, options := range map[string][]kvqueue.AddOption{"no group": nil, "group": {kvqueue.Group("g")}} {
		for _, most := range []int{2, 40} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					kv := newStore(t)
					one, two := newCut(kv), newCut(kv)
					delay := func() time.Duration { return rand.N(time.Duration(most) * time.Millisecond) }
					one.delay, two.delay = delay, delay
					assigns := open(t, one, "q")
					require.Zero(t, takeNow(t, assigns, 1))
					given := open(t, two, "q")
					require.Zero(t, takeNow(t, given, 1))
					const rounds = 200
					wrong := 0
					for range rounds {
						_, err := assigns.Add(t.Context(), []byte("a"), options...)
						require.NoError(t, err)
						time.Sleep(time.Second)
						for takeNow(t, given, 1) == 0 {
							wrong++
							time.Sleep(time.Second)
						}
					}
					assert.Zero(t, wrong, "of %d calls, delays up to %d ms", rounds, most)
				})
			})
		}
	}
}
