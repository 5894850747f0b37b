package kvqueue_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
)

// The checker of histories finds what is wrong with a queue that has a broken store.
func TestABrokenQueueIsNotLinearizable(t *testing.T) {
	const nothing = "nothing is broken"
	for name, breaks := range map[string]func(*broken){
		nothing:                                     func(*broken) {},
		"claims are in the wrong order":             func(b *broken) { b.reads = lastFirst },
		"what was acknowledged comes again":         func(b *broken) { b.commits = b.undying },
		"what Enqueue has added is not there":       func(b *broken) { b.commits = b.forgets },
		"what Enqueue has added is there twice":     func(b *broken) { b.commits = b.doubles },
		"what is given back is behind all others":   func(b *broken) { b.commits, b.reads = b.remembers, b.backLast },
		"what is given back is gone":                func(b *broken) { b.commits = b.losesReturns },
		"a failure is not counted":                  func(b *broken) { b.commits = b.uncounted(0) },
		"a process that went away is not counted":   func(b *broken) { b.commits = b.uncounted(1) },
		"what a dead process had comes back twice":  func(b *broken) { b.commits = b.twice },
		"a group is not held":                       func(b *broken) { b.commits = holdsNone },
		"an id does not stand":                      func(b *broken) { b.commits = forgetsIDs },
		"an id stands for another item":             func(b *broken) { b.commits = b.mixesIDs },
		"a session ends while its process may work": func(b *broken) { b.ttl = func(d time.Duration) time.Duration { return d / 2 } },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(40) { // until it has come to what is broken
				h := proof.NewHistory(seed)
				synctest.Test(t, func(t *testing.T) {
					kv := &broken{KV: newStore(t), keys: map[string]bool{}}
					breaks(kv)
					before, err := proof.NewClient(t.Context(), h, "before", proof.NewDice(seed), kv, proof.Direct, proof.Limits()...)
					require.NoError(t, err)
					groups := strings.Count(name, "group")
					ids := 3 * strings.Count(name, "id ")
					before.Groups, before.IDs = groups, ids
					for i := range 12 { // so that there is more than one
						before.Produce(t.Context(), fmt.Sprint("before.", i))
					}
					require.NoError(t, before.Close(t.Context()))
					record(t, h, kv, seed, 1, groups, ids, nil)
				})
				if name == nothing && seed < 5 {
					h.Check(t)
				} else if name == nothing {
					return
				} else if result, faults := h.Verdict(); result == porcupine.Illegal {
					t.Log(seed, faults)
					return
				}
			}
			assert.Equal(t, nothing, name, "it was not found")
		})
	}
}

// A broken store does something else than it was asked for.
type broken struct {
	kvqueue.KV
	ttl     func(time.Duration) time.Duration
	commits func(guards []kvqueue.Guard, writes []kvqueue.Write) []kvqueue.Write // with mu held
	reads   func(pairs []kvqueue.Pair) []kvqueue.Pair                            // of those of ready items; with mu held

	mu   sync.Mutex
	keys map[string]bool
	done bool
}

func (b *broken) Session(ctx context.Context, ttl time.Duration) (kvqueue.Session, error) {
	if b.ttl != nil {
		ttl = b.ttl(ttl)
	}
	return b.KV.Session(ctx, ttl)
}

func (b *broken) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	if b.commits == nil {
		return b.KV.Commit(ctx, guards, writes)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	done, keys := b.done, b.keys
	own := b.commits(guards, slices.Clone(writes))
	rev, err := b.KV.Commit(ctx, guards, own)
	if err != nil {
		b.done, b.keys = done, keys
	}
	return rev, err
}

func (b *broken) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	if b.reads == nil {
		return b.KV.Read(ctx, ranges...)
	}
	whole := slices.Clone(ranges)
	for i := range whole {
		whole[i].Limit = 0
	}
	results, rev, err := b.KV.Read(ctx, whole...)
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range results {
		r := &results[i]
		if bytes.Contains(ranges[i].Begin, []byte("/q/q/")) {
			r.Pairs = b.reads(r.Pairs)
		}
		if limit := ranges[i].Limit; limit > 0 && len(r.Pairs) > limit {
			r.Pairs, r.More = r.Pairs[:limit], true
		}
	}
	return results, rev, err
}

func lastFirst(pairs []kvqueue.Pair) []kvqueue.Pair {
	slices.Reverse(pairs)
	return pairs
}

// is reports whether a write is of a kind of key of the queue.
func is(w kvqueue.Write, kind string, deletes bool) bool {
	return w.Delete == deletes && bytes.HasPrefix(w.Key, []byte("kvq/q/"+kind+"/"))
}

func has(writes []kvqueue.Write, kind string, deletes bool) bool {
	return slices.ContainsFunc(writes, func(w kvqueue.Write) bool { return is(w, kind, deletes) })
}

// reaps reports whether a transaction gives back what a session had that has ended.
func reaps(guards []kvqueue.Guard) bool {
	return len(guards) > 0 && guards[0].Is == kvqueue.Absent && bytes.HasPrefix(guards[0].Key, []byte("kvq/q/l/"))
}

func item(key []byte) string { return string(key[len(key)-20:]) }

// holdsNone does not say that a group is held.
func holdsNone(_ []kvqueue.Guard, writes []kvqueue.Write) []kvqueue.Write {
	return slices.DeleteFunc(writes, func(w kvqueue.Write) bool {
		return is(w, "g", false) && bytes.HasSuffix(w.Key, []byte("/")) && len(w.Value) == 0
	})
}

// forgetsIDs does not say what item an id has.
func forgetsIDs(_ []kvqueue.Guard, writes []kvqueue.Write) []kvqueue.Write {
	return slices.DeleteFunc(writes, func(w kvqueue.Write) bool { return is(w, "i", false) })
}

// mixesIDs says of one id that it has the item of another.
func (b *broken) mixesIDs(_ []kvqueue.Guard, writes []kvqueue.Write) []kvqueue.Write {
	for i, w := range writes {
		switch {
		case !is(w, "i", false) || b.done:
		case len(b.keys) == 0:
			b.keys[string(w.Value)] = true
		default:
			b.done = true
			for other := range b.keys {
				writes[i].Value = []byte(other)
			}
		}
	}
	return writes
}

// undying puts back one item that is acknowledged.
func (b *broken) undying(_ []kvqueue.Guard, writes []kvqueue.Write) []kvqueue.Write {
	for i, w := range writes {
		if is(w, "d", true) && !b.done {
			b.done = true
			writes[i] = again(w)
		}
	}
	return writes
}

// again makes an item ready that was to be gone.
func again(w kvqueue.Write) kvqueue.Write {
	return kvqueue.Write{Key: []byte("kvq/q/q/" + item(w.Key)), Value: []byte{0, 0, 1}}
}

// forgets does not put one item that is added.
func (b *broken) forgets(_ []kvqueue.Guard, writes []kvqueue.Write) []kvqueue.Write {
	if b.done || !has(writes, "d", false) {
		return writes
	}
	b.done = true
	return slices.DeleteFunc(writes, func(w kvqueue.Write) bool { return is(w, "d", false) || is(w, "q", false) })
}

// doubles adds one item again, behind itself.
func (b *broken) doubles(_ []kvqueue.Guard, writes []kvqueue.Write) []kvqueue.Write {
	if b.done || !has(writes, "d", false) {
		return writes
	}
	b.done = true
	for _, w := range writes {
		if is(w, "d", false) || is(w, "q", false) {
			key := bytes.Clone(w.Key)
			key[len(key)-3]++
			writes = append(writes, kvqueue.Write{Key: key, Value: w.Value})
		}
	}
	return writes
}

// remembers which items were given back.
func (b *broken) remembers(_ []kvqueue.Guard, writes []kvqueue.Write) []kvqueue.Write {
	for _, w := range writes {
		if has(writes, "w", true) && is(w, "q", false) {
			b.keys[item(w.Key)] = true
		}
	}
	return writes
}

// backLast shows those behind all others.
func (b *broken) backLast(pairs []kvqueue.Pair) []kvqueue.Pair {
	back := func(p kvqueue.Pair) int {
		if b.keys[item(p.Key)] {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(pairs, func(x, y kvqueue.Pair) int { return back(x) - back(y) })
	return pairs
}

// losesReturns has items be gone whose claims are ended by their owners.
func (b *broken) losesReturns(guards []kvqueue.Guard, writes []kvqueue.Write) []kvqueue.Write {
	if reaps(guards) || !has(writes, "w", true) {
		return writes
	}
	for i, w := range writes {
		if is(w, "q", false) {
			writes[i] = kvqueue.Write{Key: []byte("kvq/q/d/" + item(w.Key)), Delete: true}
		}
	}
	return writes
}

// uncounted forgets one of the numbers of an item that goes back.
func (b *broken) uncounted(number int) func([]kvqueue.Guard, []kvqueue.Write) []kvqueue.Write {
	return func(_ []kvqueue.Guard, writes []kvqueue.Write) []kvqueue.Write {
		for i, w := range writes {
			if is(w, "q", false) {
				writes[i].Value = bytes.Clone(w.Value)
				writes[i].Value[number] = 0
			}
		}
		return writes
	}
}

// twice puts back once more what a session had that has ended, when it is acknowledged.
func (b *broken) twice(guards []kvqueue.Guard, writes []kvqueue.Write) []kvqueue.Write {
	for i, w := range writes {
		switch {
		case reaps(guards) && is(w, "q", false):
			b.keys[item(w.Key)] = true
		case is(w, "d", true) && b.keys[item(w.Key)] && !b.done:
			b.done = true
			writes[i] = again(w)
		}
	}
	return writes
}

// The checker of histories knows which stories can be of a queue.
func TestAStoryIsOneOfAQueueOrNot(t *testing.T) {
	for story, want := range map[string]porcupine.CheckResult{
		"enqueue a, enqueue b, claim a, ack a, claim b, ack b, empty":                               porcupine.Ok,
		"enqueue a, enqueue b, claim b, claim a":                                                    porcupine.Illegal,
		"enqueue a, claim a, claim a":                                                               porcupine.Illegal,
		"enqueue a, claim a, ack a, ack a":                                                          porcupine.Illegal,
		"enqueue a, claim a, ack a, claim a":                                                        porcupine.Illegal,
		"claim a, enqueue a":                                                                        porcupine.Illegal,
		"enqueue a, ack a":                                                                          porcupine.Illegal,
		"enqueue a, empty":                                                                          porcupine.Illegal,
		"enqueue a, claim a, empty":                                                                 porcupine.Illegal,
		"enqueue a, enqueue b, claim a, fail a, claim a 2, claim b":                                 porcupine.Ok,
		"enqueue a, enqueue b, claim a, claim b, fail a, return b, claim a 2":                       porcupine.Ok,
		"enqueue a, enqueue b, claim a, claim b, fail a, return b, claim b":                         porcupine.Illegal, // a is before it
		"enqueue a, enqueue b, claim a, fail a, claim b":                                            porcupine.Illegal,
		"enqueue a, enqueue b, claim a, return a, claim b":                                          porcupine.Illegal,
		"enqueue a, claim a, fail a, claim a 1":                                                     porcupine.Illegal, // the failure counts
		"enqueue a, claim a, return a, claim a 2":                                                   porcupine.Illegal, // that is none
		"enqueue a, claim a, return a, claim a 1, ack a":                                            porcupine.Ok,
		"enqueue a, claim a, fail a, fail a":                                                        porcupine.Illegal,
		"enqueue a, claim a, fail a, claim a 2, fail a, claim a 3, fail a":                          porcupine.Ok,
		"enqueue a, claim a, fail a, claim a 2, fail a, claim a 3, fail a, claim a 4":               porcupine.Illegal, // it is dead
		"enqueue a, claim a, fail a, claim a 2, fail a, claim a 3, fail a, empty":                   porcupine.Illegal,
		"enqueue a, claim a, fail a, claim a 2, fail a, claim a 3, fail a, requeue a, claim a 1":    porcupine.Ok,
		"enqueue a, claim a, requeue a":                                                             porcupine.Illegal,
		"enqueue a, claim a, end, claim a 2, ack a, empty":                                          porcupine.Ok,
		"enqueue a, claim a, end, claim a 1":                                                        porcupine.Illegal, // that it went away counts
		"enqueue a, claim a, end, claim a 2, claim a 3":                                             porcupine.Illegal, // it comes back once
		"enqueue a, claim a, ack a, end, claim a 2":                                                 porcupine.Illegal,
		"enqueue a, claim a, claim a 2":                                                             porcupine.Illegal, // its session lives
		"enqueue a, enqueue b, claim a, end, claim b, claim a 2":                                    porcupine.Ok,      // it comes back at any time
		"enqueue a, claim a, ack? a, empty":                                                         porcupine.Ok,
		"enqueue a, claim a, ack? a, end, claim a 2":                                                porcupine.Ok,
		"enqueue a, claim a, ack? a, claim a 2":                                                     porcupine.Illegal,
		"enqueue a, claim a, fail? a, claim a 2":                                                    porcupine.Ok,
		"enqueue a, enqueue b, claim a, fail? a, claim b, claim a 2":                                porcupine.Ok,
		"enqueue a, claim a, fail? a, claim a 2, claim a 3":                                         porcupine.Illegal,
		"enqueue? a, enqueue b, claim b, claim a, ack b, ack a, empty":                              porcupine.Ok, // it was added late
		"enqueue b, enqueue? c, claim b, ack b, empty, claim c":                                     porcupine.Ok,
		"enqueue a#1, enqueue b#1 a#1, claim a#1, enqueue c#1 a#1, ack a#1, enqueue d#1 a#1, empty": porcupine.Ok,
		"enqueue a#1, enqueue b#1, claim a#1, claim b#1":                                            porcupine.Illegal, // of an id one is added
		"enqueue a#1, claim a#1, ack a#1, enqueue b#1, claim b#1":                                   porcupine.Illegal, // it stands for longer
		"enqueue a#1, enqueue b#2 a#1, claim a#1":                                                   porcupine.Illegal, // the key is that of another id
		"enqueue b#1 a#1, enqueue a#1, claim a#1":                                                   porcupine.Illegal, // it was told before a#1 is there
		"enqueue? a#1, enqueue b#1 a#1, claim a#1":                                                  porcupine.Ok,
		"enqueue? a#1, enqueue b#1, claim b#1":                                                      porcupine.Ok, // nothing has come of it
	} {
		h := told(story)
		result, faults := h.Verdict()
		assert.Equal(t, want, result, "%s: %v", story, faults)
	}
}

// told is the history of steps that came one after another, by handles whose sessions end with
// "end". An item has a word and a letter, which is its place, too; of a claim there may be the attempt, and of a call for an id
// the place that it was told.
// A call that has a question mark was not answered.
func told(story string) *proof.History {
	h, handle, fences := proof.NewHistory(1), 0, map[string]int64{}
	for _, step := range strings.Split(story, ", ") {
		words := append(strings.Fields(step), "", "")
		what, open := strings.CutSuffix(words[0], "?")
		value, who, now := words[1], fmt.Sprint(handle), h.Tick()
		e := proof.Entry{Kind: proof.Began, ID: now, What: what, Who: who, Value: value, Key: value, Fence: fences[value]}
		switch what {
		case "end":
			h.Note(proof.Entry{Kind: proof.Over, Who: who})
			handle++
			continue
		case "claim":
			session := "session " + who
			h.Note(proof.Entry{Kind: proof.Begun, Who: who, Session: session})
			h.Note(proof.Entry{Kind: proof.Sent, ID: now, Who: who, At: now, Claims: []proof.Sight{{Session: session, Key: value}}})
			h.Note(proof.Entry{Kind: proof.Answered, ID: now, Fence: now, At: h.Tick()})
			e.Kind, e.ID, e.Fence, e.At = proof.Claimed, 0, now, h.Tick()
			_, _ = fmt.Sscan(words[2], &e.Attempt)
			fences[value] = now
		}
		if what == proof.Enqueue { // its key is known to who is told it
			e.Key = ""
		}
		if h.Note(e); e.Kind == proof.Began && !open {
			h.Note(proof.Entry{Kind: proof.Ended, ID: now, Key: cmp.Or(words[2], value), At: h.Tick()})
		}
	}
	return h
}
