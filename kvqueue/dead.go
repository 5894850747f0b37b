package kvqueue

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// FindDead yields the dead letters that a filter means, in the order of the queue, some at a time.
//
//	for letter, err := range q.FindDead(ctx, kvqueue.Filter{Why: "connection refused"}) {
//
// After an error it yields nothing more. It blocks until the store has answered, or ctx ends. A filter with Most <
// 0 is an [*InvalidError].
func (q *Queue) FindDead(ctx context.Context, f Filter) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		n := 0
		for p, err := range q.filtered(ctx, "x", f) {
			if err != nil {
				yield(DeadLetter{}, err)
				return
			}
			item, there, err := q.look(ctx, p)
			if err == nil && !there {
				continue
			}
			r, why, _ := decodeDead(p.Value)
			if n++; !yield(DeadLetter{item, int(r.failures), int(r.crashes), why}, err) || err != nil || n == f.Most {
				return
			}
		}
	}
}

// RequeueAll puts the dead letters that a filter means back to their old places, as [Queue.Requeue] does, and
// returns how many were put back.
//
//	n, err := q.RequeueAll(ctx, kvqueue.Filter{Why: "connection refused"})
//
// Each has a transaction of its own, and one that dies again meanwhile stays dead. It blocks until all is done, or
// the store fails, or ctx ends. n letters are back, also with an error, which matches [ErrUnknown] if one more may
// be. A RequeueAll that has failed may be called again. A filter with Most < 0 is an [*InvalidError].
func (q *Queue) RequeueAll(ctx context.Context, f Filter) (n int, err error) {
	for p, err := range q.filtered(ctx, "x", f) {
		ok := false
		if err == nil {
			ok, err = q.requeue(ctx, keyOf(p.Key), p.Rev)
		}
		switch {
		case errors.As(err, new(*InvalidError)):
			return n, err
		case err != nil:
			return n, fmt.Errorf("kvqueue: requeue %q: %d items are ready again: %w", q.name, n, err)
		case ok:
			n++
		}
		if f.Most > 0 && n == f.Most {
			break
		}
	}
	return n, nil
}

// DiscardAll deletes the dead letters that a filter means, and returns how many it has deleted.
//
//	n, err := q.DiscardAll(ctx, kvqueue.Filter{Before: time.Now().AddDate(0, -1, 0)})
//
// A letter that is requeued meanwhile stays. It goes on as [Queue.Purge] does, and n and the error say the same.
func (q *Queue) DiscardAll(ctx context.Context, f Filter) (n int, err error) {
	e := eraser{q: q, most: f.Most}
	return e.end("discard dead letters of", e.erase(ctx, q.filtered(ctx, "x", f)))
}

// Discard deletes dead letters, and returns how many it has deleted. Keys of which there is none change nothing.
// It goes on as [Queue.Purge] does, and n and the error say the same.
func (q *Queue) Discard(ctx context.Context, keys ...Key) (n int, err error) {
	e := eraser{q: q}
	return e.end("discard dead letters of", e.erase(ctx, q.lettersOf(ctx, keys)))
}

// lettersOf yields those of keys that are dead letters, each once.
func (q *Queue) lettersOf(ctx context.Context, keys []Key) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		had := make(map[Key]bool, len(keys))
		for _, k := range keys {
			if had[k] {
				continue
			}
			had[k] = true
			results, _, err := q.kv.Read(ctx, Range{Begin: q.lay.dead(k), KeysOnly: true})
			if err != nil {
				yield(Pair{}, err)
				return
			}
			if pairs := results[0].Pairs; len(pairs) > 0 && !yield(pairs[0], nil) {
				return
			}
		}
	}
}
