package kvqueue

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A head is what the store says of the front of a queue.
type head struct {
	// floor: no ready item has a smaller hint, or ever will. So a search for the first
	// item begins here, and does not visit what was deleted long ago.
	floor uint64
	// offset is added to a revision of the store to make a hint. It is 0 but in a store that
	// was restored or mirrored, and whose revisions begin anew.
	offset uint64
	rev    Rev // that of the key; 0: there is none
}

func (h head) encode() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, h.floor), h.offset)
}

func (h head) hint(rev Rev) uint64 { return uint64(rev) + h.offset }

func decodeHead(r Result) (h head, err error) {
	if len(r.Pairs) == 0 {
		return head{}, nil
	}
	p := r.Pairs[0]
	if len(p.Value) != 16 {
		return h, fmt.Errorf("kvqueue: the store holds a head that this package did not write: %x", p.Value)
	}
	return head{binary.BigEndian.Uint64(p.Value), binary.BigEndian.Uint64(p.Value[8:]), p.Rev}, nil
}

// floorAtMost is a guard that holds while the floor is not above hint.
func (l layout) floorAtMost(hint uint64) Guard {
	return Guard{Key: l.head(), Is: Below, Value: binary.BigEndian.AppendUint64(nil, hint+1)}
}

func (l layout) putHead(h head) (Guard, Write) {
	guard := Guard{Key: l.head(), Is: Unchanged, Rev: h.rev}
	if h.rev == 0 {
		guard = Guard{Key: l.head(), Is: Absent}
	}
	return guard, Write{Key: l.head(), Value: h.encode()}
}

// A snapshot is what was read at one revision.
type snapshot struct {
	head head
	rev  Rev
	of   []Result
}

// now is the hint of an item that is enqueued now.
func (s *snapshot) now() uint64 { return s.head.hint(s.rev) }

// read reads the head and more at one revision. It makes the head of a queue that has
// none, and mends that of a store whose revisions have gone back.
func (q *Queue) read(ctx context.Context, more ...Range) (*snapshot, error) {
	return q.readBy(ctx, q.kv.Read, more...)
}

// A reader is a method of a store that reads.
type reader = func(ctx context.Context, ranges ...Range) ([]Result, Rev, error)

func (q *Queue) readBy(ctx context.Context, read reader, more ...Range) (*snapshot, error) {
	ranges := append([]Range{{Begin: q.lay.head()}}, more...)
	for {
		results, rev, err := read(ctx, ranges...)
		if err != nil {
			return nil, err
		}
		s := &snapshot{rev: rev, of: results[1:]}
		if s.head, err = decodeHead(results[0]); err != nil {
			return nil, err
		}
		if s.head.rev != 0 && s.now() >= s.head.floor {
			q.seen.note(time.Now(), s.now())
			return s, nil
		}
		if s.head.rev != 0 {
			err = q.mend(ctx, s)
		} else {
			guard, write := q.lay.putHead(s.head)
			_, err = q.kv.Commit(ctx, []Guard{guard}, []Write{write})
		}
		if ignore(err) != nil {
			return nil, err
		}
	}
}

// mend lets hints be counted from behind all that were ever handed out, in a store whose
// revisions have gone back.
func (q *Queue) mend(ctx context.Context, s *snapshot) error {
	last, err := q.lastHint(ctx)
	if err != nil {
		return err
	}
	h := s.head
	h.offset = max(last, h.floor) + 1 - uint64(s.rev)
	q.seen.forget()
	guard, write := q.lay.putHead(h)
	// In a mirror nothing vanishes with its session: the next mark would never be due.
	_, err = q.kv.Commit(ctx, []Guard{guard}, []Write{write, {Key: q.lay.hourglass(), Delete: true}})
	return err
}

// check mends the head if there is an item from the future, or the id of one that is gone: the store was restored or
// mirrored, and its revisions have gone back behind the floor or not.
func (q *Queue) check(ctx context.Context) error {
	for _, kind := range hinted {
		if err := q.checkKind(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

// hinted are the kinds of keys in which each hint is that ever was of an item, as long as that is of use.
var hinted = []string{"d", "j"}

func (q *Queue) checkKind(ctx context.Context, kind string) error {
	s, err := q.read(ctx)
	if err != nil {
		return err
	}
	end := after(q.lay.all(kind))
	for {
		begin := q.lay.from(kind, s.now()+1)
		if s, err = q.read(ctx, Range{Begin: begin, End: end, Limit: pageSize, KeysOnly: true}); err != nil {
			return err
		}
		pairs := s.of[0].Pairs
		if len(pairs) == 0 {
			return nil
		}
		if last := q.lay.lastHintOf(kind, pairs); last == 0 { // others have written those
			return nil
		} else if last > s.now() {
			if err := ignore(q.mend(ctx, s)); err != nil {
				return err
			}
		} // else they were added since the last look
	}
}

// lastHintOf returns the greatest hint of keys of one kind; 0: there is none.
func (l layout) lastHintOf(kind string, pairs []Pair) (last uint64) {
	for _, p := range pairs {
		if k, ok := l.itemIn(kind, p.Key); ok {
			last = max(last, k.hint())
		}
	}
	return last
}

// lastHint returns the greatest hint of an item, or of one that is gone and has an id. It reads all keys of the queue: it is
// for a store that was restored.
func (q *Queue) lastHint(ctx context.Context) (last uint64, err error) {
	for _, kind := range hinted {
		for begin, end := q.lay.all(kind), after(q.lay.all(kind)); ; {
			results, _, err := q.kv.Read(ctx, Range{Begin: begin, End: end, Limit: 1000, KeysOnly: true})
			if err != nil {
				return 0, err
			}
			for _, p := range results[0].Pairs {
				begin = append(bytes.Clone(p.Key), 0)
			}
			last = max(last, q.lay.lastHintOf(kind, results[0].Pairs))
			if !results[0].More {
				break
			}
		}
	}
	return last, nil
}

// stall is how long a producer may take from its look at the revision to its transaction
// before the floor may overtake it, and it has to try again.
const stall = 250 * time.Millisecond

// sightings are hints that were seen, with their times.
type sightings struct {
	mu   sync.Mutex
	ring []sighting
}

type sighting struct {
	at   time.Time
	hint uint64
}

// note remembers one in a while.
func (s *sightings) note(at time.Time, hint uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.ring); n > 0 && at.Sub(s.ring[n-1].at) < stall/16 {
		return
	}
	s.ring = append(s.ring, sighting{at, hint})
	for len(s.ring) > 1 && at.Sub(s.ring[1].at) >= stall {
		s.ring = s.ring[1:]
	}
}

// old returns a hint that was seen at least stall ago; 0: there is none.
func (s *sightings) old(now time.Time) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ring) == 0 || now.Sub(s.ring[0].at) < stall {
		return 0
	}
	return s.ring[0].hint
}

func (s *sightings) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring = nil
}

// raiseFloor moves the floor up to the first ready item, whose hint is first, or to what
// was seen a while ago if that is less, and if it is far enough, or many items were there. A head
// that stays where it is does no harm: another has moved it, or the next look will. Nobody waits
// for it.
func (q *Queue) raiseFloor(s *snapshot, first uint64) {
	to := min(first, q.seen.old(time.Now()))
	claimed := q.counts.kinds[Claimed].Load()
	if to < s.head.floor+window/2 && (to <= s.head.floor || claimed < q.raiseAt.Load()) {
		return
	}
	if !q.raising.CompareAndSwap(false, true) {
		return
	}
	guard, write := q.lay.putHead(head{floor: to, offset: s.head.offset, rev: s.head.rev})
	guards := []Guard{guard, {Key: q.lay.from("q", s.head.floor), End: q.lay.from("q", to), Is: Absent}}
	if q.group.Go(func(ctx context.Context) error {
		defer q.raising.Store(false)
		_, _ = q.kv.Commit(ctx, guards, []Write{write})
		return nil
	}, async.Name("kvqueue: raise the floor of "+q.name)) == nil {
		q.raiseAt.Store(claimed + window)
	}
}
