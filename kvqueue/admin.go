package kvqueue

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/ambit-go/ambit/async"
)

// pageSize is how many keys a look at a whole queue reads at once.
const pageSize = 256

// Peek returns the first items that are ready, most at the most, without claiming them: first those of no
// [Group], then those of groups, one group after another. The
// Attempt of each is how many runs of it there were, and none of them can be settled. Items that
// are claimed while Peek reads may be missing or be there. It blocks until the store has
// answered, or ctx ends. most < 1 is an [*InvalidError].
func (q *Queue) Peek(ctx context.Context, most int) ([]Item, error) {
	if most < 1 {
		return nil, invalid("most", "%d is less than 1", most)
	}
	var items []Item
	for _, ready := range []iter.Seq2[Pair, error]{q.pages(ctx, "q", 0), q.readyGrouped(ctx)} {
		for p, err := range ready {
			if err != nil {
				return nil, err
			}
			item, there, err := q.look(ctx, p)
			switch {
			case err != nil:
				return nil, err
			case there:
				items = append(items, item)
			}
			if len(items) == most {
				return items, nil
			}
		}
	}
	return items, nil
}

// look returns an item that is looked at and not claimed. It reports false if the item is gone
// since its key was read.
func (q *Queue) look(ctx context.Context, p Pair) (i Item, there bool, err error) {
	rec, _, err := decodeDead(p.Value) // behind the record of one that is ready there is nothing
	if err != nil {                    // Audit names it
		return i, false, nil
	}
	if group, _, _, ok := q.lay.groupIn(p.Key); ok {
		rec.group = group
	}
	i = Item{Key: keyOf(p.Key), Group: unescape(rec.group), Attempt: int(rec.attempts()), Fence: p.Rev, Added: rec.addedAt()}
	results, _, err := q.kv.Read(ctx, Range{Begin: q.lay.data(i.Key)})
	if err != nil || len(results[0].Pairs) == 0 {
		return i, false, err
	}
	i.Value = results[0].Pairs[0].Value
	return i, true, nil
}

// pages yields the keys of one kind from a hint on, in order, and their values. Ready items
// begin at the floor. Keys that this package did not write are left out.
func (q *Queue) pages(ctx context.Context, kind string, first uint64) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		s, err := q.read(ctx)
		if err != nil {
			yield(Pair{}, err)
			return
		}
		begin := first
		if kind == "q" {
			begin = max(begin, s.head.floor)
		}
		for p, err := range q.span(ctx, kind, begin, s.now(), false) {
			if _, ours := q.lay.itemIn(kind, p.Key); (err != nil || ours) && !yield(p, err) {
				return
			}
		}
	}
}

// span yields the keys of one kind with hints from begin to last, in order, by reads that are
// bounded on both ends and in their number.
func (q *Queue) span(ctx context.Context, kind string, begin, last uint64, keysOnly bool) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		from, span := q.lay.from(kind, begin), uint64(window)
		for {
			end := q.lay.from(kind, begin+span)
			results, _, err := q.kv.Read(ctx, Range{Begin: from, End: end, Limit: pageSize, KeysOnly: keysOnly})
			if err != nil {
				yield(Pair{}, err)
				return
			}
			k := newKey(begin, 0, 0)
			for _, p := range results[0].Pairs {
				from = append(bytes.Clone(p.Key), 0)
				if of, ok := q.lay.itemIn(kind, p.Key); ok {
					k = of
				}
				if !yield(p, nil) {
					return
				}
			}
			if results[0].More { // a store visits all of a range, whatever its limit is
				begin, span = k.hint(), min(span, 2*(k.hint()-begin)+1)
				continue
			}
			if begin += span; begin > last {
				return
			}
			if from = end; len(results[0].Pairs) < pageSize/4 {
				span *= 4
			}
		}
	}
}

// A Length says how many items a queue has.
type Length struct {
	Ready   int `json:"ready"` // that nobody has claimed
	Claimed int `json:"claimed"`
	Dead    int `json:"dead"`
	Grouped int `json:"grouped"` // of the ready ones: that are of a [Group]
}

// Len counts the items of the queue: it reads every key of them, some at a time, so what
// it says may never have been so at one moment.
func (q *Queue) Len(ctx context.Context) (n Length, err error) {
	if n.Ready, err = q.count(ctx, "q"); err != nil {
		return n, err
	}
	if n.Grouped, err = q.countGrouped(ctx); err != nil {
		return n, err
	}
	n.Ready += n.Grouped
	if n.Dead, err = q.count(ctx, "x"); err != nil {
		return n, err
	}
	n.Claimed, err = q.countClaims(ctx)
	return n, err
}

func (q *Queue) count(ctx context.Context, kind string) (n int, err error) {
	for _, err := range q.pages(ctx, kind, 0) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (q *Queue) countClaims(ctx context.Context) (n int, err error) {
	sessions := q.lay.all("s")
	results, _, err := q.kv.Read(ctx, Range{Begin: sessions, End: after(sessions), KeysOnly: true})
	if err != nil {
		return 0, err
	}
	for _, p := range results[0].Pairs {
		id, ok := q.lay.sessionIn("s", p.Key)
		if !ok {
			continue
		}
		for begin, end := q.lay.claims(id), after(q.lay.claims(id)); ; {
			page, _, err := q.kv.Read(ctx, Range{Begin: begin, End: end, Limit: pageSize, KeysOnly: true})
			if err != nil {
				return n, err
			}
			pairs := page[0].Pairs
			if n += len(pairs); !page[0].More {
				break
			}
			begin = append(bytes.Clone(pairs[len(pairs)-1].Key), 0)
		}
	}
	return n, nil
}

// Stats is what this handle has done since it was opened.
type Stats struct {
	Enqueued, Claimed, Acked, Failed, Returned, Died, Reaped, Lost int64
	Conflicts                                                      int64 // claims that others have spoilt
	StoreFailed                                                    int64 // how often trouble with the store has begun; see [Queue.Trouble]
	Overruled                                                      int64 // whether the queue has other options than the handle: 0 or 1
	Overdue                                                        int64 // items whose run has reached the [TimeLimit]
}

// Stats returns what this handle has done. It asks nobody.
func (q *Queue) Stats() Stats {
	k := func(kind EventKind) int64 { return q.counts.kinds[kind].Load() }
	return Stats{k(Enqueued), k(Claimed), k(Acked), k(Failed), k(Returned), k(Died), k(Reaped), k(Lost),
		q.counts.conflicts.Load(), k(StoreFailed), k(Overruled), k(Overdue)}
}

// A DeadLetter is an item that is not tried any more.
type DeadLetter struct {
	Item
	Failures, Crashes int
	Why               string // the text of its last error
}

// Dead returns dead letters in the order of the queue, most at the most, of those behind
// the key from; a zero from begins with the first. It blocks until the store has answered, or ctx
// ends. most < 1 is an [*InvalidError].
func (q *Queue) Dead(ctx context.Context, from Key, most int) (letters []DeadLetter, err error) {
	if most < 1 {
		return nil, invalid("most", "%d is less than 1", most)
	}
	for l, err := range q.FindDead(ctx, Filter{Behind: from, Most: most}) {
		if err != nil {
			return nil, err
		}
		letters = append(letters, l)
	}
	return letters, nil
}

// Requeue puts dead letters back to their old places, as if they had never been tried, one
// after the other. It returns how many of the keys were dead letters, also with an error, which
// matches [ErrUnknown] if the next one may be back, or not. It blocks until the store has
// answered, or ctx ends.
func (q *Queue) Requeue(ctx context.Context, keys ...Key) (n int, err error) {
	for _, k := range keys {
		ok, err := q.requeue(ctx, k, 0)
		if err != nil {
			return n, err
		}
		if ok {
			n++
		}
	}
	return n, nil
}

// requeue puts a letter back, if it is that of a revision; 0: of any.
func (q *Queue) requeue(ctx context.Context, k Key, of Rev) (bool, error) {
	pause := async.Jitter(0.5, async.Backoff(5*time.Millisecond, time.Second))
	unknown := false
	for try := 1; ; try++ {
		s, err := q.read(ctx, Range{Begin: q.lay.dead(k)})
		switch {
		case err != nil:
			return false, unsure(unknown, err)
		case len(s.of[0].Pairs) == 0:
			return unknown, nil // an answer was lost, or another has done it
		}
		p := s.of[0].Pairs[0]
		if of != 0 && p.Rev != of { // it was put back, and has died again
			return unknown, nil
		}
		rec, _, err := decodeDead(p.Value)
		if err != nil {
			return false, err
		}
		t := transaction{q: q, guards: []Guard{{Key: p.Key, Is: Unchanged, Rev: p.Rev}}, writes: []Write{{Key: p.Key, Delete: true}}}
		if t.back(k, record{size: rec.size, added: rec.added, group: rec.group}); rec.group == "" {
			t.lower(s.head, k.hint())
		}
		t.writes = append(t.writes, Write{Key: append(q.lay.all("n"), 'c')})
		_, err = q.kv.Commit(ctx, t.guards, t.writes)
		if errors.Is(err, ErrUnknown) {
			unknown, of = true, p.Rev
		}
		switch {
		case err == nil:
			return true, nil
		case ignore(err) != nil || errors.Is(err, ErrNoSpace):
			return false, unsure(unknown, err)
		case async.Sleep(ctx, pause(try)) != nil:
			return false, unsure(unknown, stop(ctx))
		}
	}
}
