package kvqueue

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Position says where items stand in their queue.
type Position struct {
	First, Last Key
	Items       int // how many there are
}

// An appending is what one call of Enqueue adds in one transaction, or what one of Transact does.
type appending struct {
	tx       *Tx    // of Transact, which shares its transaction with nobody; nil: Enqueue or Add
	producer uint64 // in the keys of what tx adds

	added
	first *Key // of the item that has the id, if this is a repeat, as the last try has seen it

	items [][]byte
	bytes int
	at    *Position
}

// Enqueue adds items at the end of the queue, in their order, and returns where they
// stand. Every item of a call that has begun after this one returned comes behind them;
// so do those of a later call of this process. The items are one transaction, together
// with those of other calls of this process that come at the same time; as many as one
// transaction of the store cannot hold are added in several, in order.
//
// It blocks until the store has them, or ctx ends, or the store has not done it in 30 s; if the store refuses them
// at that time, the error matches that of the store, too. An error that matches [ErrUnknown] says that the items
// from the Position on may have been added, or not; with every other error those of the Position were added, and no
// more. An item that is too large, or no item, is an [*InvalidError], and nothing was added. The items are the
// caller's again when it returns. On a full store it returns [ErrNoSpace], on a closed handle [ErrClosed].
//
// Enqueue may be repeated by nobody but its caller: if the answer of the store is lost, the
// queue finds out what has become of the transaction. Only if this process was cut off for
// so long that its session has ended that cannot be known. Where an item must come once all the same, use
// [Queue.Add] with an [ID], and repeat that.
func (q *Queue) Enqueue(ctx context.Context, items ...[]byte) (pos Position, err error) {
	parts, err := q.parts(items)
	if err != nil {
		return pos, err
	}
	return q.enqueue(ctx, parts)
}

// enqueue adds parts one after another.
func (q *Queue) enqueue(ctx context.Context, parts []*appending) (pos Position, err error) {
	if ctx.Err() != nil {
		return pos, stop(ctx)
	}
	defer func() {
		if pos.Items > 0 {
			q.tell(Report{Kind: Enqueued, Items: pos.Items})
		}
	}()
	for _, part := range parts {
		open, err := q.enqueues.do(ctx, part)
		switch {
		case open:
			return pos, fmt.Errorf("%w: %w", ErrUnknown, err)
		case err != nil:
			return pos, err
		case pos.Items == 0:
			pos.First = part.at.First
		}
		pos.Last = part.at.Last
		pos.Items += len(part.items)
	}
	return pos, nil
}

// parts cuts items into what one transaction holds.
func (q *Queue) parts(items [][]byte) (parts []*appending, err error) {
	if len(items) == 0 {
		return nil, invalid("Enqueue", "there is no item")
	}
	size := 0
	for i, item := range items {
		if len(item) > q.maxItem {
			return nil, invalid("Enqueue", "item %d has %d bytes, and %d is the most: store it elsewhere and enqueue its name", i, len(item), q.maxItem)
		}
		size += len(item)
	}
	// The items may be sent after the call has returned, if its ctx ends: then they are the
	// caller's again.
	kept := make([]byte, 0, size)
	var last *appending
	for _, item := range items {
		kept = append(kept, item...)
		item = kept[len(kept)-len(item) : len(kept) : len(kept)]
		if last == nil || len(last.items) == q.maxItems || last.bytes+len(item) > q.maxItem {
			last = &appending{at: new(Position)}
			parts = append(parts, last)
		}
		last.items = append(last.items, item)
		last.bytes += len(item)
	}
	return parts, nil
}

// takeAppendings is how many of them one transaction holds.
func (q *Queue) takeAppendings(requests []*request[*appending]) int {
	items, bytes := 0, 0
	for n, r := range requests {
		if r.of.tx != nil || hasID(requests[:n], r.of.id) {
			return max(n, 1)
		}
		items, bytes = items+len(r.of.items)*record{group: r.of.group}.weight(), bytes+r.of.bytes
		if r.of.id != "" {
			items++ // it has as many keys
		}
		if n > 0 && (items > q.maxItems || bytes > q.maxItem) {
			return n
		}
	}
	return len(requests)
}

// appendBatch adds what several calls want, in one transaction.
func (q *Queue) appendBatch(ctx context.Context, batch []*request[*appending]) {
	err := q.appendAll(ctx, batch)
	for _, r := range batch {
		r.answer(err)
	}
}

// patience is for how long a transaction is tried again while the store does not answer.
const patience = 30 * time.Second

func (q *Queue) appendAll(ctx context.Context, batch []*request[*appending]) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, tooLong(patience))
	defer cancel()
	pause := async.Jitter(0.5, async.Backoff(10*time.Millisecond, time.Second))
	for try := 1; ; try++ {
		q.enqueues.tries()
		l, err := q.alive(ctx)
		if err == nil {
			err = l.append(ctx, batch)
		}
		q.enqueues.fails(err)
		switch {
		case err == nil || errors.Is(err, ErrUnknown) || !errors.Is(err, errAgain) && !again(err):
			return err
		case async.Sleep(ctx, pause(try)) != nil:
			return fmt.Errorf("%w; the last try: %w", context.Cause(ctx), err)
		}
	}
}

var (
	// errAgain says that nothing was added, and another try may do better.
	errAgain   = errors.New("kvqueue: try again")
	errRefused = fmt.Errorf("%w: one of the caller's", ErrConflict)
)

// tooLong is the error of a transaction that was tried for that long, whatever the store has answered.
func tooLong(d time.Duration) error {
	return fmt.Errorf("kvqueue: the store has not done the transaction in %v", d)
}

// again reports whether a call that failed so may be made again: nothing was written.
func again(err error) bool {
	return !errors.Is(err, ErrClosed) && !errors.Is(err, ErrNoSpace) && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrLost) &&
		!errors.Is(err, errRefused) && !errors.As(err, new(*InvalidError))
}

// append adds a batch in the name of l. The n key of this process changes with each such
// transaction, and guards it: so if an answer was lost the key says whether the
// transaction was done, and if it is sent again only one of the two can be. The number of a
// batch is never used again, as its transaction may be done late.
func (l *session) append(ctx context.Context, batch []*request[*appending]) error {
	q, bell := l.q, l.q.lay.session("n", l.id)
	var guards []Guard // of the caller
	if tx := batch[0].of.tx; tx != nil {
		guards = tx.guards
	}
	ranges := slices.Concat([]Range{{Begin: bell}}, guarded(guards), q.versionFor(batch), q.idsOf(batch))
	l.seq++
	seq, unknown := l.seq, false
	var full error // the store has refused it for good, or done it
	pause := async.Jitter(0.5, async.Backoff(5*time.Millisecond, time.Second))
	for try := 1; ; try++ {
		q.enqueues.tries()
		s, err := q.read(ctx, ranges...)
		switch {
		case err != nil && (!unknown || ctx.Err() != nil):
			return unsure(unknown, err)
		case err == nil && len(s.of[0].Pairs) == 0:
			l.end("the store has ended the session", nil)
			if unknown { // what was claimed is another matter
				return fmt.Errorf("%w: the session of this process is over: %s", ErrUnknown, whyLost(l.err()))
			}
			return errAgain
		case err == nil:
			var last, hint uint64
			p := s.of[0].Pairs[0]
			if last, hint, err = decodeTurn(p.Value); err != nil {
				return unsure(unknown, err)
			}
			if last == seq { // an answer was lost
				q.place(batch, hint)
				return nil
			}
			if full != nil {
				return full
			}
			if allHold(guards, s.of[1:]) != nil {
				return unsure(unknown, errRefused)
			}
			var t *transaction
			if t, err = l.appendWrites(ctx, s, p.Rev, batch, seq); err == nil && len(t.writes) > 1 { // else all are repeats
				_, err = q.kv.Commit(ctx, t.guards, t.writes)
			}
			switch {
			case err == nil:
				q.place(batch, s.now())
				return nil
			case errors.Is(err, ErrUnknown):
				if errors.Is(err, ErrNoSpace) { // the next look says what came of this one, but not of those before
					full = unsure(unknown, ErrNoSpace)
				}
				unknown = true
			case !errors.Is(err, ErrConflict):
				return unsure(unknown, err)
			}
		}
		q.enqueues.fails(err)
		if try > 1 && async.Sleep(ctx, pause(try-1)) != nil {
			return unsure(unknown, context.Cause(ctx))
		}
	}
}

// unsure adds to the error of a try what is not known of another.
func unsure(unknown bool, err error) error {
	if unknown && !errors.Is(err, ErrUnknown) {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}

func (l *session) appendWrites(ctx context.Context, s *snapshot, turn Rev, batch []*request[*appending], seq uint64) (*transaction, error) {
	q, n, own := l.q, uint32(0), l.q.lay.session("n", l.id)
	t := &transaction{q: q, guards: []Guard{{Key: own, Is: Unchanged, Rev: turn}},
		writes: []Write{{Key: own, Value: encodeTurn(seq, s.now()), Session: l.s}}}
	if one := batch[0].of; one.tx != nil {
		t.guards, t.writes = append(t.guards, one.tx.guards...), append(t.writes, one.tx.writes...)
		return t, t.add(ctx, one.tx, one.producer)
	}
	t.guards = append(t.guards, q.lay.floorAtMost(s.now()))
	more := s.of[1:] // a batch has no guards
	if withGroups(batch) {
		t.raise(q.lay, more[0])
		more = more[1:]
	}
	for _, r := range batch {
		if r.of.id != "" {
			r.of.first, more = t.identify(q, r.of.id, more[0], newKey(s.now(), q.producer, n)), more[1:]
		}
		if r.of.first != nil {
			continue
		}
		for _, item := range r.of.items {
			t.added(q.lay, newKey(s.now(), q.producer, n), item, r.of.group)
			n++
		}
	}
	return t, nil
}

// place tells the callers of a batch where their items stand.
func (q *Queue) place(batch []*request[*appending], hint uint64) {
	n := uint32(0)
	for _, r := range batch {
		if first := r.of.first; first != nil {
			*r.of.at = Position{First: *first, Last: *first}
			continue
		}
		items := uint32(len(r.of.items))
		*r.of.at = Position{newKey(hint, q.producer, n), newKey(hint, q.producer, n+items-1), int(items)}
		n += items
	}
}

// A turn is what the n key of a producer says: the number of its last transaction, and the
// hint of the items that this has added.
func encodeTurn(seq, hint uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, seq), hint)
}

func decodeTurn(b []byte) (seq, hint uint64, err error) {
	if len(b) != 16 {
		return 0, 0, fmt.Errorf("kvqueue: the store holds a turn that this package did not write: %x", b)
	}
	return binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), nil
}
