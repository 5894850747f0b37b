package memkv

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
)

// A Fault is what goes wrong with a transaction.
type Fault uint8

const (
	// None: nothing does.
	None Fault = iota
	// Conflict: it is refused, as if a guard did not hold.
	Conflict
	// Dropped: it is not done, and its caller is told that this is not known.
	Dropped
	// Unanswered: it is done if every guard holds, and its caller is told that this is not known.
	Unanswered
	// Late: its caller is told that it is not known, and then it is done.
	Late
)

// A Faulty is a store whose transactions go wrong as was asked for. It is made by
// [NewFaulty], and any number of goroutines may use it.
type Faulty struct {
	kvqueue.KV
	faults func(guards []kvqueue.Guard, writes []kvqueue.Write) Fault // nil: nothing goes wrong
	late   sync.WaitGroup
}

// NewFaulty returns a store that is kv, of whatever kind, but f says what goes wrong with each
// transaction. f is called by many goroutines at once; a nil f is no fault.
func NewFaulty(kv kvqueue.KV, f func(guards []kvqueue.Guard, writes []kvqueue.Write) Fault) *Faulty {
	return &Faulty{KV: kv, faults: f}
}

// lateBy is how much later than its answer a transaction is done that is [Late].
const lateBy = 20 * time.Millisecond

// Commit does all of the writes if every guard holds, unless a fault was asked for.
func (s *Faulty) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	fault := None
	if s.faults != nil {
		fault = s.faults(guards, writes)
	}
	switch fault {
	case Conflict:
		return 0, kvqueue.ErrConflict
	case Dropped:
		return 0, kvqueue.ErrUnknown
	case Unanswered:
		_, _ = s.KV.Commit(ctx, guards, writes) // that it was refused is not known either
		return 0, kvqueue.ErrUnknown
	case Late:
		s.later(ctx, guards, writes)
		return 0, kvqueue.ErrUnknown
	default:
		return s.KV.Commit(ctx, guards, writes)
	}
}

// Glance is Read, for a store that is a [kvqueue.Updater].
func (s *Faulty) Glance(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	if inner, ok := s.KV.(kvqueue.Updater); ok {
		return inner.Glance(ctx, ranges...)
	}
	return s.Read(ctx, ranges...)
}

// Update is as Commit, for a store that is a [kvqueue.Updater].
func (s *Faulty) Update(
	ctx context.Context, ranges []kvqueue.Range, decide func(results []kvqueue.Result, rev kvqueue.Rev) ([]kvqueue.Guard, []kvqueue.Write, error),
) (kvqueue.Rev, error) {
	inner, ok := s.KV.(kvqueue.Updater)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	fault := None
	rev, err := inner.Update(ctx, ranges, func(results []kvqueue.Result, rev kvqueue.Rev) ([]kvqueue.Guard, []kvqueue.Write, error) {
		guards, writes, err := decide(results, rev)
		if err != nil || s.faults == nil {
			return guards, writes, err
		}
		switch fault = s.faults(guards, writes); fault {
		case Conflict:
			return nil, nil, kvqueue.ErrConflict
		case Dropped:
			return nil, nil, kvqueue.ErrUnknown
		case Late:
			s.later(ctx, guards, writes)
			return nil, nil, kvqueue.ErrUnknown
		default:
			return guards, writes, nil
		}
	})
	if fault == Unanswered {
		return 0, kvqueue.ErrUnknown
	}
	return rev, err
}

// later does a transaction after its answer.
func (s *Faulty) later(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) {
	s.late.Add(1)
	time.AfterFunc(lateBy, func() {
		defer s.late.Done()
		_, _ = s.KV.Commit(context.WithoutCancel(ctx), guards, writes)
	})
}

// Wait returns when nothing is late any more. It is called when no more transactions come,
// and before the store is closed.
func (s *Faulty) Wait() { s.late.Wait() }
