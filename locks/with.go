package locks

import (
	"cmp"
	"context"
	"errors"

	"github.com/ambit-go/ambit/async"
)

// With runs body while this process holds the lock of a key. It returns a [*LostError],
// **also if body returned nil**, when the lock was lost before everything that body
// started had ended: somebody else may have been granted it in the meantime.
//
// With waits for the lock until ctx is done, or for as long as [Wait] says; those who
// wait are granted it in the order in which they came. Then it runs body on the calling
// goroutine, as the body of an [async.Scope]: what body starts with its ctx is joined
// before the lock is given back, so nothing that body has started runs without it. The
// lease is renewed meanwhile, also when ctx has ended and body has not.
//
// The ctx of body is cancelled when ctx is, with its cause; when the lock is lost, with the
// [*LostError], before anybody else can be granted it; and as that of a Scope is. [From]
// finds the lock in it. A body that does not look at its ctx may run on when somebody else
// has the lock: see [OnOverrun], and package fence for what nobody but the resource that is
// written to can do.
//
// When everything has ended the lock is given back, under a context that is not cancelled,
// for at most 5 s. A panic of body, or runtime.Goexit, goes on after that.
//
// With returns what [async.Scope] returns for body. Errors of its own:
//   - [*NotGrantedError]: somebody else has the lock, and the time to wait is over.
//   - [*LostError]: see above; it matches what body returned, too.
//   - [*ReleaseError]: body has returned nil, all was done under the lock, and then it could
//     not be given back. An error of body goes first.
//   - [ErrReleased], with [Reentrant]: ctx has outlived the call that has the lock, which was
//     given back before body had ended.
//   - [ErrReentrant], [ErrNotFound], [ErrConflict], [ErrValidation], [ErrClosed]: nothing
//     was done.
//   - [ErrUnavailable]: the store did not answer for the length of a lease, at most 10 s.
//     A call that does not wait asks once.
//   - [ErrUnknownOutcome], beside one of the others: the request could not be withdrawn. It
//     may be granted yet, to nobody, and ends with its lease.
func (m *Manager) With(ctx context.Context, key string, body func(ctx context.Context) error, options ...LockOption) error {
	return m.with(ctx, key, body, options)
}

// TryWith is [Manager.With] with [NoWait]. ran says whether the lock was granted and body
// was run; that somebody else has it is no error.
func (m *Manager) TryWith(ctx context.Context, key string, body func(ctx context.Context) error, options ...LockOption) (ran bool, err error) {
	err = m.with(ctx, key, func(ctx context.Context) error {
		ran = true
		return body(ctx)
	}, options, NoWait())
	if !ran {
		if busy, ok := err.(*NotGrantedError); ok && busy.Err == nil {
			err = nil
		}
	}
	return ran, err
}

// WithPermit runs body with one of size permits of a semaphore, as [Manager.With] does
// with a mutex. The first call makes the semaphore. From then on it has that size until
// [Resize] or [Manager.CreateSemaphore] gives it another. A greater number is ignored, which
// is told once to [Observe]; a smaller one binds the call that names it: it waits until fewer
// are held. So programs that name different numbers may run beside each other.
func (m *Manager) WithPermit(ctx context.Context, key string, size int, body func(ctx context.Context) error, options ...LockOption) error {
	return m.with(ctx, key, body, options, Permit(size))
}

// WithPermits runs body with n of size permits of a semaphore, which are granted all at
// once. A request for many is not passed by later ones for few, see [Fair].
func (m *Manager) WithPermits(ctx context.Context, key string, size, n int, body func(ctx context.Context) error, options ...LockOption) error {
	return m.with(ctx, key, body, options, Permits(size, n))
}

// WithRead runs body with a read-write lock, beside any number of other readers, as
// [Manager.With] does with a mutex. A writer that came earlier goes first.
func (m *Manager) WithRead(ctx context.Context, key string, body func(ctx context.Context) error, options ...LockOption) error {
	return m.with(ctx, key, body, options, Read())
}

// WithWrite runs body with a read-write lock, alone, as [Manager.With] does with a mutex.
func (m *Manager) WithWrite(ctx context.Context, key string, body func(ctx context.Context) error, options ...LockOption) error {
	return m.with(ctx, key, body, options, Write())
}

func (m *Manager) with(ctx context.Context, key string, body func(ctx context.Context) error, options []LockOption, kind ...LockOption) error {
	if body == nil {
		panic("locks: a nil body: pass what is to be called")
	}
	c, err := m.call(key, options, kind...)
	if err != nil {
		return err
	}
	name := m.name(key)
	h, err := m.around(ctx, name, c)
	if err != nil {
		return err
	}
	if h != nil {
		return runUnder(ctx, body, nil, h)
	}
	if h, err = m.acquire(ctx, name, c); err != nil {
		return err
	}
	h.scoped = true
	return runUnder(ctx, body, []*Hold{h}, h)
}

// runUnder runs body under holds, of which it then gives back those that are its own.
func runUnder(ctx context.Context, body func(ctx context.Context) error, own []*Hold, holds ...*Hold) (err error) {
	ctx, stop := under(ctx, holds[1:])
	stopWatch := watchOverrun(holds)
	returned := false
	defer func() { // a panic of body, and Goexit, wait for this and go on
		lost := lostUnder(holds, own)
		stopWatch()
		stop()
		released := giveBackAll(ctx, own)
		if stolen, is := released.(*LostError); is && lost == nil {
			lost, released = stolen, nil
		}
		if returned {
			err = outcome(err, lost, released)
		}
	}()
	if err = over(holds); err == nil { // else the body is not even begun
		err = holds[0].lease.Run(ctx, func(ctx context.Context) error {
			for _, h := range holds {
				ctx = hold(ctx, h)
			}
			return body(ctx)
		})
	}
	returned = true
	return err
}

// over returns why a body does not have all of its locks; nil if it has. A loss goes before
// a lock that was given back.
func over(holds []*Hold) error {
	var first error
	for _, h := range holds {
		err := h.Err() // after the process was stopped the body may have been quicker than the timer
		if _, lost := err.(*LostError); lost {
			return err
		}
		first = cmp.Or(first, err)
	}
	return first
}

// lostUnder is called when all that a body has started has ended. It returns the first loss, or
// ErrReleased if a lock that is not the body's own was given back before; nil if the body had
// all of them. It ends the holds that are the body's own: what becomes of them from now on does
// not matter to it.
func lostUnder(holds, own []*Hold) error {
	first := over(holds)
	for _, h := range own {
		if lost := h.end(); lost != nil && first == nil { // lost between the two looks
			first = lost
		}
	}
	return first
}

// outcome is what a call returns whose body returned err.
func outcome(err, lost, released error) error {
	switch {
	case lost == nil:
		return both(err, released)
	case err == nil:
		return lost
	}
	if errors.Is(err, lost) {
		return err
	}
	return both(lost, err)
}

// giveBackAll gives holds back, the last first. When the store does not answer for one, the
// rest are given back beside each other: each takes some seconds then, and there may be many.
// It returns the first error, a loss before all others.
func giveBackAll(ctx context.Context, holds []*Hold) error {
	var first error
	for i := len(holds) - 1; i >= 0; i-- {
		err := holds[i].giveBack(ctx)
		first = graver(first, err)
		if errors.Is(err, ErrUnavailable) {
			return graver(first, giveBackTogether(ctx, holds[:i]))
		}
	}
	return first
}

// graver is the first of two errors, unless only the second is a loss.
func graver(first, second error) error {
	if _, lost := first.(*LostError); !lost {
		if _, lost := second.(*LostError); lost {
			return second
		}
	}
	return cmp.Or(first, second)
}

func giveBackTogether(ctx context.Context, holds []*Hold) error {
	var all []*async.Future[struct{}]
	for _, h := range holds {
		all = append(all, async.Start(context.Background(), func(context.Context) error { return h.giveBack(ctx) }, async.Name("locks: gives back")))
	}
	var first error
	for _, f := range all {
		_, err := f.Join(ctx)
		first = graver(first, err)
	}
	return first
}
