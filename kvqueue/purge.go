package kvqueue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Purge deletes the ready items of the queue that a filter means, and returns how many it has deleted.
//
//	n, err := q.Purge(ctx, kvqueue.Filter{Before: time.Now().Add(-24 * time.Hour)})
//
// Items of a [Group] are deleted as others are. Claimed items stay, and so does an item that is claimed while Purge
// runs. Producers and consumers go on meanwhile; items that are added meanwhile may be deleted or stay, and Purge
// ends all the same. It goes on in transactions of 63 items at most, which only delete, so that it works on a full
// store, too.
//
// It blocks until all is done, or the store fails, or ctx ends. n items were deleted by this call, also with an
// error. If answers were lost, and items have gone of which it cannot be known whether this call has deleted them
// or a consumer has taken them, then n leaves them out, and the error says how many there are, and matches
// [ErrUnknown]. A Purge that has failed may be called again. A Filter with Why, or with Most < 0, is an
// [*InvalidError].
func (q *Queue) Purge(ctx context.Context, f Filter) (n int, err error) {
	e := eraser{q: q, most: f.Most}
	return e.end("purge", e.erase(ctx, q.filtered(ctx, "q", f)))
}

// An eraser deletes items that nobody has claimed: ready ones or dead letters.
type eraser struct {
	q     *Queue
	most  int // it deletes so many at the most; 0: all
	n     int // it has deleted so many
	doubt int // so many have gone after a transaction of it whose answer was lost: by that, or others have taken them all
}

// end is the answer of a call.
func (e *eraser) end(verb string, err error) (int, error) {
	done := fmt.Sprintf("kvqueue: %s %q: %d items were deleted", verb, e.q.name, e.n)
	switch {
	case e.doubt > 0:
		if err == nil {
			err = ErrUnknown
		}
		return e.n, fmt.Errorf("%s, and it is not known whether %d more were: %w", done, e.doubt, unsure(true, err))
	case err == nil || errors.As(err, new(*InvalidError)):
		return e.n, err
	default:
		return e.n, fmt.Errorf("%s: %w", done, err)
	}
}

// room is how many items the next transaction may delete.
func (e *eraser) room() int {
	if e.most == 0 {
		return e.q.maxItems
	}
	return min(e.q.maxItems, e.most-e.n-e.doubt)
}

// erase deletes items, as many in a transaction as it holds.
func (e *eraser) erase(ctx context.Context, items iter.Seq2[Pair, error]) error {
	var batch []Pair
	for p, err := range items {
		if err != nil {
			return err
		}
		if batch = append(batch, p); len(batch) < e.room() {
			continue
		}
		if err := e.commit(ctx, batch); err != nil {
			return err
		}
		if batch = nil; e.room() == 0 {
			return nil
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return e.commit(ctx, batch)
}

// commit deletes those of a batch that nobody takes meanwhile, all of them or none in one transaction.
func (e *eraser) commit(ctx context.Context, batch []Pair) error {
	pause := async.Jitter(0.5, async.Backoff(5*time.Millisecond, time.Second))
	unknown := false // a transaction that deletes all of batch was done, or was not, or will be
	for try := 1; len(batch) > 0; try++ {
		t := transaction{q: e.q}
		for _, p := range batch {
			t.guards = append(t.guards, Guard{Key: p.Key, Is: Unchanged, Rev: p.Rev})
			t.writes = append(t.writes, Write{Key: p.Key, Delete: true})
			t.gone(keyOf(p.Key))
		}
		_, err := e.q.kv.Commit(ctx, t.guards, t.writes)
		if err == nil {
			e.n += len(batch)
			return nil
		}
		unknown = unknown || errors.Is(err, ErrUnknown)
		left := batch
		if err = ignore(err); err == nil {
			left, err = e.left(ctx, batch, unknown)
		}
		if err == nil && len(left) == len(batch) && async.Sleep(ctx, pause(try)) != nil {
			err = stop(ctx)
		}
		if err != nil {
			if unknown {
				e.doubt += len(batch)
			}
			return err
		}
		unknown = unknown && len(left) == len(batch) // else others have some, and that transaction is not done any more
		batch = left
	}
	return nil
}

// left returns those of a batch that are where they were. If there are none, though a transaction that deletes
// them all may have been done, they are counted as doubtful, unless one of them is elsewhere: others have taken
// them all then.
func (e *eraser) left(ctx context.Context, batch []Pair, unknown bool) (left []Pair, err error) {
	there, payloads := make([]Range, len(batch)), make([]Range, len(batch))
	for i, p := range batch {
		there[i] = Range{Begin: p.Key, KeysOnly: true}
		payloads[i] = Range{Begin: e.q.lay.data(keyOf(p.Key)), KeysOnly: true}
	}
	results, _, err := e.q.kv.Read(ctx, there...)
	if err != nil {
		return batch, err
	}
	for i, r := range results {
		if len(r.Pairs) > 0 && r.Pairs[0].Rev == batch[i].Rev {
			left = append(left, batch[i])
		}
	}
	if len(left) > 0 || !unknown {
		return left, nil
	}
	if results, _, err = e.q.kv.Read(ctx, payloads...); err != nil {
		return batch, err
	}
	for _, r := range results {
		if len(r.Pairs) > 0 {
			return nil, nil
		}
	}
	e.doubt += len(batch)
	return nil, nil
}
