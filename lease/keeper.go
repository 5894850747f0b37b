package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Renewal is a request to a renew function: that the thing Of be granted for Length from
// now, and not for less than it is granted already.
type Renewal[T any] struct {
	Of     T
	Length time.Duration
}

// A Keeper renews leases, many in one call, until they are released or lost. Made by
// [NewKeeper]. Any number of goroutines may use one.
//
// A keeper has no goroutine, and no timer while it keeps nothing. Each call of the renew
// function is a task.
type Keeper[T any] struct {
	set   settings
	renew func(ctx context.Context, batch []Renewal[T]) ([]error, error)

	mu     sync.Mutex // guards what follows
	closed error      // set when the scope ends; Keep returns it
	kept   map[*Lease]*entry[T]
	alone  int                       // calls on their way that take no other lease along
	next   time.Duration             // when there is something to do
	timer  *time.Timer               // fires then, or earlier to look at the clock; nil: nothing was kept yet
	tasks  []*async.Future[struct{}] // that have not been seen to end
	failed []error                   // of tasks that have ended, the first few
}

// An entry is what a keeper knows of a lease that it keeps. Guarded by mu of the keeper.
type entry[T any] struct {
	of T
	schedule
	call *call[T] // the renewal whose answer is waited for; nil: none
}

// NewKeeper returns a keeper that has renew renew its leases.
//
//	k := lease.NewKeeper(ctx, func(ctx context.Context, batch []lease.Renewal[string]) ([]error, error) {
//		return nil, store.Renew(ctx, batch[0].Of, batch[0].Length)
//	}, lease.Most(1))
//
// # Details
//
// renew is called with leases of about the same length, [Most] of them at most, and blocks
// until the store has answered or ctx is done. ctx carries no values, and is done after a
// sixth of the length, or when no lease of the batch needs the call any more. The answer is
// an error for the call as a whole, or one for each lease in the order of the batch; nil
// and nil is success for all. An error that matches [ErrLost] ends the lease, also as the
// error of a call as a whole: all of its leases are lost. [ErrSkipped] has a lease renewed
// again at once, alone. After any other error it is renewed again after a twelfth of its
// length, and again, as long as it is believed. An answer counts for what it says also if
// it comes late, from the time at which its call was made.
//
// renew is called by several goroutines at once: for leases of other lengths, or while an
// earlier call has not come back. No lock is held, so it may use the keeper. A panic of
// renew, or Goexit, is a call that has failed, and besides an error of the scope of ctx.
//
// The keeper belongs to the scope of ctx, and goes on to renew while tasks of the scope
// run, cancelled or not: they may have things to give back. When they and the exit hooks
// that were registered later have ended, the keeper ends: what it still keeps is ended with
// [ErrEnded] and not renewed any more, its calls are cancelled, and joined for as long as
// [async.HookTimeout] says. The tasks of a keeper stand at the root of package async, so
// neither an [async.Limit] nor an executor of the scope keeps a renewal waiting. For a keeper
// that belongs to no scope see [Unscoped].
//
// NewKeeper panics if renew or an option is nil, or ctx carries no scope. It does not
// block.
func NewKeeper[T any](
	ctx context.Context, renew func(ctx context.Context, batch []Renewal[T]) ([]error, error), opts ...Option,
) *Keeper[T] {
	if renew == nil {
		panic("lease: NewKeeper with a nil function: pass what renews leases")
	}
	k := &Keeper[T]{renew: renew, kept: map[*Lease]*entry[T]{}, next: never}
	k.set.name = "lease"
	for _, o := range opts {
		if o == nil {
			panic("lease: NewKeeper: an option is nil: leave it out instead")
		}
		o.applyKeeper(&k.set)
	}
	if k.set.clock == nil {
		k.set.clock = NewClock()
	}
	if !k.set.unscoped {
		k.join(ctx)
	}
	return k
}

// join has the keeper ended by the scope of ctx.
func (k *Keeper[T]) join(ctx context.Context) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case string: // there is no scope
			panic(strings.Replace(r, "async: OnExit", "lease: NewKeeper", 1))
		default:
			panic(r)
		}
	}()
	async.OnExit(ctx, k.end)
}

// Now returns the time on the clock of the keeper: take it before a request is sent, for
// [Term].Granted.
//
//	t := lease.Term{Granted: k.Now(), Length: 10 * time.Second}
func (k *Keeper[T]) Now() time.Duration { return k.set.clock.Now() }

// Keep begins to renew something that was granted for the term t, and returns the lease.
//
//	granted := k.Now()
//	err := store.Acquire(ctx, "report", 10*time.Second)
//	l, err := k.Keep("report", lease.Term{Granted: granted, Length: 10 * time.Second}) // if err was nil
//
// # Details
//
// of stands for the thing in the calls of the renew function; the keeper only hands it on.
// Each renewal asks for the Length of t.
//
// Keep returns an [*Error] that matches [ErrOver] if the term is not believed any more,
// because the grant took too long: give the thing back, and ask again. It returns an error
// that matches [async.ErrScopeEnded] if the keeper has ended. It panics if t was granted in
// the future, for then its time is not of [Keeper.Now]. It does not block.
func (k *Keeper[T]) Keep(of T, t Term, opts ...LeaseOption) (*Lease, error) {
	now := k.Now()
	if t.Granted > now {
		panic(fmt.Sprintf("lease: Keep of a term that is granted %v from now: "+
			"take the Now of the keeper before the request", t.Granted-now))
	}
	if now >= t.Believed() {
		return nil, &Error{Reason: ErrOver}
	}
	l := &Lease{keeper: k, clock: k.set.clock, term: t}
	for _, o := range opts {
		if o == nil {
			panic("lease: Keep: an option is nil: leave it out instead")
		}
		o.applyLease(&l.set)
	}
	l.until.Store(int64(t.Believed()))
	e := &entry[T]{of: of, schedule: schedule{length: t.Length}}
	e.granted(t, rand.Float64())
	if err := k.add(l, e); err != nil {
		return nil, err
	}
	return l, nil
}

// add begins to look after a lease.
func (k *Keeper[T]) add(l *Lease, e *entry[T]) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed != nil {
		return k.closed
	}
	k.kept[l] = e
	k.lookLocked(e.next(l))
	return nil
}

// RenewNow has all that is kept renewed at once, for instance because the store was away and
// may have forgotten the leases. A renewal that is on its way is not sent again. RenewNow does not
// wait for the answers.
func (k *Keeper[T]) RenewNow() {
	now := k.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.kept {
		e.early, e.due = now, now
	}
	k.lookLocked(now)
}
