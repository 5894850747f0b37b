package kvqueue_test

import (
	"bytes"
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
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// addOnce adds an item with an id, and returns its key.
func addOnce(t *testing.T, q *kvqueue.Queue, item, id string) kvqueue.Key {
	t.Helper()
	k, err := q.Add(t.Context(), []byte(item), kvqueue.ID(id))
	require.NoError(t, err)
	return k
}

// sound has the auditor of the queue find nothing.
func sound(t *testing.T, q *kvqueue.Queue) {
	t.Helper()
	a, err := q.Audit(t.Context())
	require.NoError(t, err)
	assert.Empty(t, a.Faults)
}

// A repeat adds nothing and returns the first key, whatever has become of the item.
func TestARepeatAddsNothingAndReturnsTheFirstKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q, other := open(t, kv, "q", kvqueue.MaxAttempts(1)), open(t, kv, "q")
		first := addOnce(t, q, "a", "one")
		repeat := func(in string) {
			t.Helper()
			assert.Equal(t, first, addOnce(t, q, "a", "one"), in)
			assert.Equal(t, first, addOnce(t, other, "another payload", "one"), in)
		}
		repeat("ready")
		assert.Equal(t, []string{"a"}, all(t, q))
		require.ErrorIs(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error {
			repeat("claimed")
			return errFails
		}), errFails)
		repeat("dead")
		n, err := q.Requeue(t.Context(), first)
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		repeat("requeued")
		assert.Equal(t, []string{"a"}, all(t, q))
		require.NoError(t, q.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
			assert.Equal(t, first, items[0].Key)
			return nil
		}))
		repeat("acknowledged")
		assert.Empty(t, all(t, q))
		assert.EqualValues(t, 1, q.Stats().Enqueued, "repeats are not counted")
		assert.Zero(t, other.Stats().Enqueued)
		sound(t, q)
		assert.NotEqual(t, first, addOnce(t, open(t, kv, "q2"), "b", "one"), "an id is of one queue")
	})
}

// Whatever becomes of the transaction, its call and the repeats return one key, and one item is there.
func TestAnIDWhoseAnswerWasLostIsAddedOnce(t *testing.T) {
	for name, outcomes := range map[string][]memkv.Fault{
		"done":     {memkv.Unanswered},
		"not done": {memkv.Dropped},
		"late":     {memkv.Late},
		"many":     {memkv.Late, memkv.Dropped, memkv.Conflict, memkv.Unanswered},
		"twice":    {memkv.Late, memkv.Late},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := open(t, newStore(t, once("/d/", outcomes...)), "q")
				a := addOnce(t, q, "a", "one")
				time.Sleep(time.Second)
				assert.Equal(t, a, addOnce(t, q, "a", "one"))
				items, err := q.Peek(t.Context(), 9)
				require.NoError(t, err)
				require.Len(t, items, 1)
				assert.Equal(t, a, items[0].Key)
				sound(t, q)
			})
		})
	}
}

// The session ends before it is known what became of the transaction, and the caller is told so. The repeat, by
// whatever handle, finds out.
func TestARepeatIsTheAnswerToErrUnknown(t *testing.T) {
	for _, fault := range []memkv.Fault{memkv.Dropped, memkv.Unanswered} {
		synctest.Test(t, func(t *testing.T) {
			var armed atomic.Bool
			var net *cut
			kv := newStore(t, faults(func(_ []kvqueue.Guard, w []kvqueue.Write) memkv.Fault {
				if len(w) == 5 && !armed.Swap(true) { // the n key, and the payload, the item and the two keys of its id
					net.off()
					return fault
				}
				return memkv.None
			}))
			net = newCut(kv)
			q := open(t, net, "q", kvqueue.TTL(time.Second))
			time.AfterFunc(5*time.Second, net.on)
			_, err := q.Add(t.Context(), []byte("a"), kvqueue.ID("one"))
			require.ErrorIs(t, err, kvqueue.ErrUnknown)
			time.Sleep(10 * time.Second)
			a := addOnce(t, open(t, kv, "q"), "a", "one")
			assert.Equal(t, a, addOnce(t, q, "a", "one"))
			items, err := q.Peek(t.Context(), 9)
			require.NoError(t, err)
			require.Len(t, items, 1)
			assert.Equal(t, a, items[0].Key)
		})
	}
}

// Two handles have both seen that an id does not stand. One adds its item, and the other is told its key.
func TestOfTwoThatAddAnIDAtOnceOneIsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		late, early := open(t, net, "q"), open(t, kv, "q")
		var first kvqueue.Key
		net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
			if writesIn(w, "/d/") {
				net.intercept(nil)
				first = addOnce(t, early, "early", "one")
			}
			return nil
		})
		assert.Equal(t, first, addOnce(t, late, "late", "one"))
		assert.NotZero(t, first)
		assert.Equal(t, []string{"early"}, all(t, late))
		assert.Zero(t, late.Stats().Enqueued)
		sound(t, late)
	})
}

func writesIn(w []kvqueue.Write, part string) bool {
	for _, w := range w {
		if bytes.Contains(w.Key, []byte(part)) {
			return true
		}
	}
	return false
}

// Many handles add the same ids at the same time, while transactions go wrong.
func TestManyAddTheSameIDsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t, once("/d/", memkv.Late, memkv.None, memkv.Unanswered, memkv.Dropped, memkv.None, memkv.Late))
		const handles, ids = 5, 40
		keys := make([][ids]kvqueue.Key, handles)
		var adding sync.WaitGroup
		for h := range handles {
			q := open(t, kv, "q")
			for i := range ids {
				adding.Go(func() { keys[h][i] = addOnce(t, q, fmt.Sprint(i), fmt.Sprint("id ", i)) })
			}
		}
		adding.Wait()
		time.Sleep(time.Second)
		for h := range handles {
			assert.Equal(t, keys[0], keys[h])
		}
		q := open(t, kv, "q")
		assert.Len(t, all(t, q), ids)
		sound(t, q)
	})
}

// While a transaction is on its way several callers wait, some of them with repeats, one id twice, and a call without ids. They
// share the next transactions, and a repeat refuses nobody.
func TestARepeatRefusesNobodyThatSharesItsTransaction(t *testing.T) {
	for _, fault := range []memkv.Fault{memkv.None, memkv.Unanswered, memkv.Late, memkv.Conflict} {
		synctest.Test(t, func(t *testing.T) {
			kv := newStore(t, once("/d/", memkv.None, memkv.None, fault))
			net := newCut(kv)
			q := open(t, net, "q")
			first := addOnce(t, q, "a", "one")
			goOn := make(chan struct{})
			commits := 0
			net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
				if !writesIn(w, "/d/") {
					return nil
				}
				if commits++; commits == 1 {
					<-goOn
				}
				_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("else")}}) // the next try has another hint
				assert.NoError(t, err)
				if commits > 2 { // and comes when one that is late is done
					time.Sleep(50 * time.Millisecond)
				}
				return nil
			})
			var calls sync.WaitGroup
			calls.Go(func() { _, _ = q.Enqueue(t.Context(), []byte("holds the others")) })
			synctest.Wait()
			var keys [5]kvqueue.Key
			for i, id := range []string{"two", "one", "three", "two", "one"} { // they come in this order
				calls.Go(func() { keys[i] = addOnce(t, q, id, id) })
				synctest.Wait()
			}
			var plain kvqueue.Position
			calls.Go(func() { plain, _ = q.Enqueue(t.Context(), []byte("plain"), []byte("plain")) })
			synctest.Wait()
			close(goOn)
			calls.Wait()
			time.Sleep(time.Second)
			items, err := q.Peek(t.Context(), 99)
			require.NoError(t, err)
			var want []string
			for _, i := range items {
				want = append(want, string(i.Value))
			}
			assert.Equal(t, []string{"a", "holds the others", "two", "three", "plain", "plain"}, want)
			assert.Equal(t, first, keys[1])
			assert.Equal(t, first, keys[4])
			assert.Equal(t, items[2].Key, keys[0])
			assert.Equal(t, items[2].Key, keys[3], "the id is twice among those that wait")
			assert.Equal(t, items[3].Key, keys[2])
			assert.Equal(t, items[4].Key, plain.First)
			assert.EqualValues(t, 6, q.Stats().Enqueued)
			if fault == memkv.None {
				assert.LessOrEqual(t, commits, 3)
			}
			sound(t, q)
		})
	}
}

// As many callers wait as a transaction holds items; those with an id need more room.
func TestManyIDsThatWaitTogetherFitIntoTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newCut(newStore(t))
		q := open(t, net, "q")
		goOn := make(chan struct{})
		net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
			if writesIn(w, "/d/") {
				<-goOn
			}
			return nil
		})
		var calls sync.WaitGroup
		for i := range 200 {
			calls.Go(func() {
				_, err := q.Add(t.Context(), []byte("a"), kvqueue.ID(fmt.Sprint(i)))
				assert.NoError(t, err)
			})
		}
		synctest.Wait()
		close(goOn)
		calls.Wait()
		assert.Len(t, all(t, q), 200)
		sound(t, q)
	})
}

// A repeat writes nothing, so that a full store answers it.
func TestARepeatIsAnsweredByAFullStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &full{KV: newStore(t)}
		q := open(t, kv, "q")
		first := addOnce(t, q, "a", "one")
		kv.is.Store(true)
		assert.Equal(t, first, addOnce(t, q, "a", "one"))
		_, err := q.Add(t.Context(), []byte("b"), kvqueue.ID("two"))
		assert.ErrorIs(t, err, kvqueue.ErrNoSpace)
	})
}

// A repeat in a transaction of the user adds nothing, and the rest is done.
func TestARepeatInATransactionLeavesTheRestOfIt(t *testing.T) {
	for _, fault := range []memkv.Fault{memkv.None, memkv.Conflict, memkv.Dropped, memkv.Unanswered, memkv.Late} {
		synctest.Test(t, func(t *testing.T) {
			kv := newStore(t, once("effect", fault, fault, memkv.None, fault))
			q, out := open(t, kv, "q"), open(t, kv, "out")
			addOnce(t, out, "first", "one")
			transact := func(effect string) {
				require.NoError(t, q.Transact(t.Context(), func(tx *kvqueue.Tx) {
					tx.If(kvqueue.Guard{Key: []byte("effect " + effect), Is: kvqueue.Absent})
					tx.Put([]byte("effect "+effect), nil)
					tx.Add(out, []byte("repeat"), kvqueue.ID("one"))
					tx.Add(out, []byte("second"), kvqueue.ID("two"))
					tx.Add(out, []byte("twin"), kvqueue.ID("two"))
					tx.Add(q, []byte("in "+effect))
				}))
			}
			transact("a")
			transact("b")
			require.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
				return q.Commit(ctx, items, func(tx *kvqueue.Tx) {
					tx.Put([]byte("effect c"), nil)
					tx.Add(out, []byte("repeat"), kvqueue.ID("two"))
					tx.Add(out, []byte("third"), kvqueue.ID("three"))
				})
			}))
			time.Sleep(time.Second)
			assert.Equal(t, []string{"first", "second", "third"}, all(t, out))
			assert.Equal(t, []string{"in b"}, all(t, q))
			assert.EqualValues(t, 3, out.Stats().Enqueued)
			effects, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("effect"), End: []byte("effecu")})
			require.NoError(t, err)
			assert.Len(t, effects[0].Pairs, 3)
			sound(t, out)
		})
	}
}

// An id comes while a transaction is on its way that would add it, or one goes that it takes for a repeat: it is
// planned anew, and done as a whole.
func TestATransactionSeesIDsAsTheyAreThen(t *testing.T) {
	for id, want := range map[string][]string{"comes": {"a", "early"}, "goes": {"a", "late"}} {
		synctest.Test(t, func(t *testing.T) {
			kv := newStore(t)
			net := newCut(kv)
			q, other := open(t, net, "q"), open(t, kv, "q")
			gone := addOnce(t, other, "a", "goes")
			net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
				switch {
				case !writesIn(w, "effect"):
					return nil
				case id == "comes":
					addOnce(t, other, "early", id)
				default:
					of := append([]byte("kvq/q/j/"), gone[:]...)
					_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("kvq/q/i/goes"), Delete: true}, {Key: of, Delete: true}})
					assert.NoError(t, err)
				}
				net.intercept(nil)
				return nil
			})
			require.NoError(t, q.Transact(t.Context(), func(tx *kvqueue.Tx) {
				tx.Put([]byte("effect"), nil)
				tx.Add(q, []byte("late"), kvqueue.ID(id))
			}))
			assert.Equal(t, want, all(t, q))
			sound(t, q)
		})
	}
}

func TestAnIDMayBeAnyBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q")
		ids := []string{"a/b", "a%2Fb", "/", "%", "..", "a b", "\x00", "\xff\xff", "ä", strings.Repeat("/", 1024), "a", "a/"}
		keys := map[kvqueue.Key]bool{}
		for range 2 {
			for _, id := range ids {
				keys[addOnce(t, q, id, id)] = true
			}
		}
		assert.Len(t, keys, len(ids))
		assert.Equal(t, ids, all(t, q))
		sound(t, q)
	})
}

// A small store has transactions that hold little.
type small struct{ kvqueue.KV }

func (small) Limits() kvqueue.Limits {
	return kvqueue.Limits{Guards: 16, Writes: 16, Bytes: 4096, MinTTL: time.Second}
}

func (s small) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	size := 0
	for _, g := range guards {
		size += len(g.Key) + len(g.End) + len(g.Value)
	}
	for _, w := range writes {
		size += len(w.Key) + len(w.Value)
	}
	if l := s.Limits(); len(guards) > l.Guards || len(writes) > l.Writes || size > l.Bytes {
		return 0, fmt.Errorf("%d guards, %d writes, %d bytes: %w", len(guards), len(writes), size, errTooMuch)
	}
	return s.KV.Commit(ctx, guards, writes)
}

var errTooMuch = &kvqueue.InvalidError{What: "transaction", Why: "it is too large"}

func TestAnIDThatCannotBeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := small{newStore(t)}
		q := open(t, kv, "q")
		for text, options := range map[string][]kvqueue.AddOption{
			"ID: it is empty":                 {kvqueue.ID("")},
			"ID: it has 1025 bytes, and 1024": {kvqueue.ID(strings.Repeat("a", 1025))},
			"option: it is nil":               {nil},
			"Add: the item has ":              {kvqueue.ID(strings.Repeat("/", 1000))},
		} {
			_, err := q.Add(t.Context(), make([]byte, 100), options...)
			assert.ErrorAs(t, err, new(*kvqueue.InvalidError))
			assert.ErrorContains(t, err, text)
			err = q.Transact(t.Context(), func(tx *kvqueue.Tx) { tx.Add(q, make([]byte, 100), options...) })
			assert.ErrorAs(t, err, new(*kvqueue.InvalidError), text)
		}
		assert.Zero(t, keys(t, kv, "d"))
		for i := range 40 { // small transactions hold few of them
			for range 2 {
				addOnce(t, q, fmt.Sprint(i), fmt.Sprint(strings.Repeat("-", 150), i))
			}
		}
		assert.Len(t, all(t, q), 40)
	})
}

// A value under an id that nobody of this package has written is no id: it is named, and the next item with the id gets it.
func TestAForeignIDStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q")
		_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("kvq/q/i/one"), Value: []byte("?")}})
		require.NoError(t, err)
		a, err := q.Audit(t.Context())
		require.NoError(t, err)
		assert.Contains(t, strings.Join(a.Faults, "\n"), `the id "one" names 3f, which is no key`)
		first := addOnce(t, q, "a", "one")
		assert.Equal(t, first, addOnce(t, q, "a", "one"))
		assert.Equal(t, []string{"a"}, all(t, q))
		sound(t, q)
	})
}

func TestAnAuditNamesWhatIsWrongWithIDs(t *testing.T) {
	for says, spoil := range map[string]func(k kvqueue.Key) kvqueue.Write{
		`the id "one" of `: func(kvqueue.Key) kvqueue.Write { return kvqueue.Write{Key: []byte("kvq/q/i/one"), Delete: true} },
		"which does not have it: the id never goes": func(k kvqueue.Key) kvqueue.Write {
			return kvqueue.Write{Key: append([]byte("kvq/q/j/"), k[:]...), Delete: true}
		},
		"names 00": func(kvqueue.Key) kvqueue.Write {
			return kvqueue.Write{Key: []byte("kvq/q/i/one"), Value: make([]byte, 20)}
		},
		`did not write: "kvq/q/i/%2f"`: func(kvqueue.Key) kvqueue.Write { return kvqueue.Write{Key: []byte("kvq/q/i/%2f")} },
		`did not write: "kvq/q/j/1"`:   func(kvqueue.Key) kvqueue.Write { return kvqueue.Write{Key: []byte("kvq/q/j/1")} },
		"marks that this package did":  func(kvqueue.Key) kvqueue.Write { return kvqueue.Write{Key: []byte("kvq/q/t"), Value: []byte("?")} },
	} {
		synctest.Test(t, func(t *testing.T) {
			kv := newStore(t)
			q := open(t, kv, "q")
			k := addOnce(t, q, "a", "one")
			synctest.Wait()
			sound(t, q)
			_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{spoil(k)})
			require.NoError(t, err)
			a, err := q.Audit(t.Context())
			require.NoError(t, err)
			assert.Contains(t, strings.Join(a.Faults, "\n"), says)
		})
	}
}

// readless fails the next read.
type readless struct {
	*cut
	fail atomic.Bool
}

func (r *readless) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	if r.fail.CompareAndSwap(true, false) {
		return nil, 0, errors.New("the line is busy")
	}
	return r.cut.Read(ctx, ranges...)
}

// The answer to a Commit is lost, and so is the first look at what came of it: the next try sees the ids of the first.
func TestWhatACommitHasAddedIsToldThoughItsAnswerWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := &readless{cut: newCut(kv)}
		in, out := open(t, net, "in"), open(t, net, "out")
		_, err := in.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		require.NoError(t, in.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
			net.intercept(func(g []kvqueue.Guard, w []kvqueue.Write) error {
				if !writesIn(w, "/i/") {
					return nil
				}
				net.intercept(nil)
				_, err := kv.Commit(ctx, g, withInner(w))
				assert.NoError(t, err)
				net.fail.Store(true)
				return kvqueue.ErrUnknown
			})
			return in.Commit(ctx, items, func(tx *kvqueue.Tx) {
				tx.Add(out, []byte("b"), kvqueue.ID("b"))
				tx.Add(out, []byte("b"), kvqueue.ID("b"))
			})
		}))
		assert.EqualValues(t, 1, out.Stats().Enqueued)
		assert.Equal(t, kvqueue.Length{Ready: 1}, lengthOf(t, out))
	})
}
