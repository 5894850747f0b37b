package lockstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ambit-go/ambit/locks"
)

// ErrFault is the error of a fault that was injected.
var ErrFault = errors.New("lockstest: an injected fault")

// A Step is a method of a store, for faults.
type Step string

const (
	Acquire Step = "Acquire"
	Release Step = "Release"
	Renew   Step = "Renew"
	Create  Step = "Create"
	Get     Step = "Get"
	List    Step = "List"
	Delete  Step = "Delete"
	Revoke  Step = "Revoke"
)

// A Call is one step that a manager takes.
type Call struct {
	Step Step
	Name locks.Name
	// Number counts the calls of this step, from 1.
	Number   int
	At       time.Time
	Requests []locks.Request // of Acquire
	Renewals []locks.Renewal // of Renew
	Ref      locks.Ref       // of Release
}

// A Fault is what happens to a call.
type Fault struct {
	// Before is how long the call takes before the step is done.
	Before time.Duration
	// After is how long it takes after that.
	After time.Duration
	// Fail is the error of a step that is not done.
	Fail error
	// Lose is the error in place of the answer of a step that was done.
	Lose error
	// Silent has the call last until its context is done, before the step would be done.
	Silent bool
	// SilentAfter has it last until then after the step was done.
	SilentAfter bool
	// Deaf has the call not even end with its context: it lasts until the channel
	// is closed, and the step is not done.
	Deaf <-chan struct{}
	// Late has the answer of a step that was done come when the channel is closed, also
	// after the end of its context.
	Late <-chan struct{}
	// Skip has a renewal answer that every row is locked, and not be done.
	Skip bool
	// SkipKey has it answer that for the row of one key, and not be done for that.
	SkipKey string
	// Do is called first, in the call.
	Do func()
}

// A Faulty is a store that a test makes misbehave. All goes through until [Faulty.Inject].
type Faulty struct {
	locks.Store

	mu     sync.Mutex
	inject func(c Call) Fault
	count  map[Step]int
	calls  []Call
	mute   bool
}

// NewFaulty returns a store that passes all on to s.
func NewFaulty(s locks.Store) *Faulty { return &Faulty{Store: s, count: map[Step]int{}} }

// Inject has f decide what happens to each call from now on; nil: nothing. It is called
// by several goroutines, one at a time.
func (s *Faulty) Inject(f func(c Call) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inject = f
}

// Mute has Listen give no hints from now on, or give them again.
func (s *Faulty) Mute(mute bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = mute
}

// Calls returns the calls of a step so far.
func (s *Faulty) Calls(step Step) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var calls []Call
	for _, c := range s.calls {
		if c.Step == step {
			calls = append(calls, c)
		}
	}
	return calls
}

// Forget forgets the calls so far.
func (s *Faulty) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

func (s *Faulty) begin(c Call) (f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[c.Step]++
	c.Number, c.At = s.count[c.Step], time.Now()
	s.calls = append(s.calls, c)
	if s.inject != nil {
		f = s.inject(c)
	}
	return f
}

// do does a step with what is to happen to it.
func do[T any](ctx context.Context, s *Faulty, c Call, step func(f Fault) (T, error)) (T, error) {
	var none T
	f := s.begin(c)
	if f.Do != nil {
		f.Do()
	}
	if f.Deaf != nil {
		<-f.Deaf
		return none, locks.Unavailable(fmt.Errorf("%w: deaf", ErrFault))
	}
	if err := wait(ctx, f.Before, f.Silent); err != nil {
		return none, err
	}
	if f.Fail != nil {
		return none, f.Fail
	}
	value, err := step(f)
	if f.Late != nil {
		<-f.Late
	}
	if silent := wait(ctx, f.After, f.SilentAfter); silent != nil {
		return none, silent
	}
	if f.Lose != nil {
		return none, f.Lose
	}
	return value, err
}

// wait waits for d, or if it is silent until ctx is done, which is the error.
func wait(ctx context.Context, d time.Duration, silent bool) error {
	if d <= 0 && !silent {
		return nil
	}
	if silent {
		d = 100 * 365 * 24 * time.Hour
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return locks.Unavailable(context.Cause(ctx))
	}
}

// Acquire is a method of locks.Store.
func (s *Faulty) Acquire(ctx context.Context, name locks.Name, requests []locks.Request) (locks.Turn, error) {
	return do(ctx, s, Call{Step: Acquire, Name: name, Requests: requests}, func(Fault) (locks.Turn, error) {
		return s.Store.Acquire(ctx, name, requests)
	})
}

// Release is a method of locks.Store.
func (s *Faulty) Release(ctx context.Context, name locks.Name, ref locks.Ref, data *string) (bool, error) {
	return do(ctx, s, Call{Step: Release, Name: name, Ref: ref}, func(Fault) (bool, error) {
		return s.Store.Release(ctx, name, ref, data)
	})
}

// Renew is a method of locks.Store.
func (s *Faulty) Renew(ctx context.Context, renewals []locks.Renewal) ([]locks.RenewResult, error) {
	c := Call{Step: Renew, Renewals: renewals}
	if len(renewals) > 0 {
		c.Name = renewals[0].Name
	}
	return do(ctx, s, c, func(f Fault) ([]locks.RenewResult, error) {
		return s.renew(ctx, renewals, func(r locks.Renewal) bool { return f.Skip || f.SkipKey != "" && r.Key == f.SkipKey })
	})
}

// renew leaves out those that are skipped.
func (s *Faulty) renew(ctx context.Context, renewals []locks.Renewal, skips func(locks.Renewal) bool) ([]locks.RenewResult, error) {
	left := slices.DeleteFunc(slices.Clone(renewals), skips)
	results, err := s.Store.Renew(ctx, left)
	if err != nil || len(left) == len(renewals) {
		return results, err
	}
	all := make([]locks.RenewResult, len(renewals))
	for i, r := range renewals {
		if all[i].Verdict = locks.Skipped; !skips(r) {
			all[i], results = results[0], results[1:]
		}
	}
	return all, nil
}

// Listen gives the hints of the store, unless it is mute.
func (s *Faulty) Listen(name locks.Name) (<-chan struct{}, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mute {
		return nil, func() {}
	}
	return s.Store.Listen(name)
}

// Create is a method of locks.Store.
func (s *Faulty) Create(ctx context.Context, record locks.Record) (locks.Record, error) {
	return do(ctx, s, Call{Step: Create, Name: record.Name}, func(Fault) (locks.Record, error) { return s.Store.Create(ctx, record) })
}

// Get is a method of locks.Store.
func (s *Faulty) Get(ctx context.Context, name locks.Name) (locks.Record, error) {
	return do(ctx, s, Call{Step: Get, Name: name}, func(Fault) (locks.Record, error) { return s.Store.Get(ctx, name) })
}

// List is a method of locks.Store.
func (s *Faulty) List(ctx context.Context, tenant, after string, most int) ([]locks.Record, error) {
	return do(ctx, s, Call{Step: List, Name: locks.Name{Tenant: tenant}}, func(Fault) ([]locks.Record, error) {
		return s.Store.List(ctx, tenant, after, most)
	})
}

// Delete is a method of locks.Store.
func (s *Faulty) Delete(ctx context.Context, name locks.Name, version string) error {
	_, err := do(ctx, s, Call{Step: Delete, Name: name}, func(Fault) (struct{}, error) {
		return struct{}{}, s.Store.Delete(ctx, name, version)
	})
	return err
}

// Revoke is a method of locks.Store.
func (s *Faulty) Revoke(ctx context.Context, name locks.Name, ref locks.Ref, force bool) (int, error) {
	return do(ctx, s, Call{Step: Revoke, Name: name}, func(Fault) (int, error) { return s.Store.Revoke(ctx, name, ref, force) })
}
