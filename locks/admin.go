package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ambit-go/ambit/locks/internal/pause"
)

// CreateMutex makes the record of a mutex before its first use, or gives an idle one the
// lease, data, fairness, LockDelay and DeleteOnRelease of the options. One that is held, or
// a lock of another kind, is [ErrConflict]. No record need be made: the first call for a lock
// makes it. Lease, fairness and LockDelay of a record are for people to see: each call for the
// lock brings its own.
func (m *Manager) CreateMutex(ctx context.Context, key string, options ...LockOption) (Record, error) {
	return m.create(ctx, key, options)
}

// CreateSemaphore makes the record of a semaphore, or gives one another size: the way to
// resize it. One that is in use takes its new size at once; if that is less than is held,
// nobody is granted a permit until there is room, and requests for more than it has in all
// get [ErrConflict]. A lock of another kind is [ErrConflict].
func (m *Manager) CreateSemaphore(ctx context.Context, key string, size int, options ...LockOption) (Record, error) {
	if err := checkSize(size); err != nil {
		return Record{}, err
	}
	return m.create(ctx, key, options, Permit(size))
}

func (m *Manager) create(ctx context.Context, key string, options []LockOption, kind ...LockOption) (Record, error) {
	c, err := m.call(key, options, kind...)
	if err != nil {
		return Record{}, err
	}
	r := Record{
		Name: m.name(key), Kind: c.kind, Size: max(c.size, 1), Lease: c.lease, Fair: !c.barging, Data: c.data,
		DeleteOnRelease: c.deletes, LockDelay: c.delay, Version: newVersion(), CreatedBy: m.set.owner,
	}
	return change(ctx, func(ctx context.Context) (Record, error) { return m.store.Create(ctx, r) })
}

// Get returns the record of a lock, with its holders and how many wait for it.
// [ErrNotFound]: there is none.
func (m *Manager) Get(ctx context.Context, key string) (Record, error) {
	if err := checkKey(key); err != nil {
		return Record{}, err
	}
	return question(ctx, func(ctx context.Context) (Record, error) { return m.store.Get(ctx, m.name(key)) })
}

// Holders returns those who hold a lock, in the order in which they were granted it.
func (m *Manager) Holders(ctx context.Context, key string) ([]Grant, error) {
	r, err := m.Get(ctx, key)
	return r.Holders, err
}

// List returns records of the tenant in the order of their keys, at most of them, from the
// first key that is greater than after: "" for the first page. Holders are left out. most is
// from 1 to 1,000.
func (m *Manager) List(ctx context.Context, after string, most int) ([]Record, error) {
	if most < 1 || most > maxSize {
		return nil, &ValidationError{"List", fmt.Sprintf("a page of %d records is not from 1 to %d", most, maxSize)}
	}
	if err := checkText("after", after, maxKey); err != nil {
		return nil, err
	}
	return question(ctx, func(ctx context.Context) ([]Record, error) { return m.store.List(ctx, m.set.tenant, after, most) })
}

// Delete forgets the record of a lock. One that is held or waited for, or that a [LockDelay]
// keeps shut, is [ErrConflict], so is one that has another version than version, unless that
// is empty. [ErrNotFound]: there is none. Tokens go on: they are greater than before when the
// key is used again.
func (m *Manager) Delete(ctx context.Context, key, version string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := checkText("version", version, maxVersion); err != nil {
		return err
	}
	_, err := change(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, m.store.Delete(ctx, m.name(key), version)
	})
	return err
}

// Purge deletes records of the tenant that nobody has used for as long as [Retention] says, at
// most that many, and says how many it has deleted. most is from 1 to 1,000.
func (m *Manager) Purge(ctx context.Context, most int) (int, error) {
	if most < 1 || most > maxSize {
		return 0, &ValidationError{"Purge", fmt.Sprintf("%d records at a time is not from 1 to %d", most, maxSize)}
	}
	return change(ctx, func(ctx context.Context) (int, error) { return m.store.Purge(ctx, m.set.tenant, most) })
}

// A RevokeOption is how [Manager.Revoke] ends leases.
type RevokeOption bool

// Force ends the leases at once, and opens a lock that a [LockDelay] keeps shut: for holders
// that are known to be dead while the store cannot know it, as when its clock was put back by
// an hour. Requests that wait are forgotten with the holders: those of callers that live come
// again within about a second, in the order in which they ask. A holder that lives is told at its next renewal ([LostStolen]): for up to the length
// of its lease two may believe to have the lock. The token of the next is greater all the same.
const Force RevokeOption = true

// Revoke ends the leases of all who hold a lock, and says how many: they are not renewed any
// more, and their holders are told so at the next renewal, with [LostRevoked]. Nobody else is
// granted the lock before they have given it back, or their leases have run out. [Force] does
// not wait for that.
func (m *Manager) Revoke(ctx context.Context, key string, options ...RevokeOption) (int, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	return change(ctx, func(ctx context.Context) (int, error) {
		return m.store.Revoke(ctx, m.name(key), Ref{}, slices.Contains(options, Force))
	})
}

// Heartbeat renews a lease that another process holds, by its version, for the lease of
// the manager or that of [LeaseFor]. [Data] gives the lock another text, [RotateVersion] the
// lease another version; other options do not matter. [ErrNotOwner]: no lease has that version
// any more, or it was revoked. [ErrNotFound]: there is no such lock.
func (m *Manager) Heartbeat(ctx context.Context, key, version string, options ...LockOption) (Grant, error) {
	c, err := m.call(key, options)
	if err != nil {
		return Grant{}, err
	}
	if err := checkVersion(version); err != nil {
		return Grant{}, err
	}
	r := Renewal{Name: m.name(key), Ref: Ref{Version: version}, Lease: c.lease, Data: c.data}
	if c.rotate {
		r.NewVersion = newVersion()
	}
	result, err := change(ctx, func(ctx context.Context) (RenewResult, error) { return m.renewOne(ctx, r) })
	switch {
	case err != nil:
		return Grant{}, err
	case result.Verdict == Extended:
		return result.Grant, nil
	case result.Verdict == Revoked:
		return Grant{}, fmt.Errorf("%w: it was revoked", ErrNotOwner)
	}
	return Grant{}, m.notOwner(ctx, key)
}

// renewOne asks again while the row of the lock is locked by somebody.
func (m *Manager) renewOne(ctx context.Context, r Renewal) (RenewResult, error) {
	for {
		results, err := m.store.Renew(ctx, []Renewal{r})
		if err == nil {
			err = complete(len(results), 1)
		}
		if err != nil {
			return RenewResult{}, err
		}
		if results[0].Verdict != Skipped {
			return results[0], nil
		}
		if err := pause.For(ctx, 10*time.Millisecond); err != nil {
			return RenewResult{}, errSkipped
		}
	}
}

// ReleaseVersion gives back a lease that another process holds, by its version. [Data]
// gives the lock another text; other options do not matter. Errors are those of
// [Manager.Heartbeat].
func (m *Manager) ReleaseVersion(ctx context.Context, key, version string, options ...LockOption) error {
	c, err := m.call(key, options)
	if err != nil {
		return err
	}
	if err := checkVersion(version); err != nil {
		return err
	}
	released, err := change(ctx, func(ctx context.Context) (bool, error) {
		return m.store.Release(ctx, m.name(key), Ref{Version: version}, c.data)
	})
	if err == nil && !released {
		return m.notOwner(ctx, key)
	}
	return err
}

// notOwner says which of the two it is when no lease has a version.
func (m *Manager) notOwner(ctx context.Context, key string) error {
	if _, err := m.Get(ctx, key); errors.Is(err, ErrNotFound) {
		return ErrNotFound
	}
	return ErrNotOwner
}

// question asks the store once, for a bounded time.
func question[T any](ctx context.Context, f func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	value, err := f(ctx)
	if err != nil && transient(err) {
		err = Unavailable(err)
	}
	return value, err
}

// change is question for what changes something: without an answer nobody knows whether it
// was done.
func change[T any](ctx context.Context, f func(ctx context.Context) (T, error)) (T, error) {
	value, err := question(ctx, f)
	if err != nil && transient(err) {
		err = both(err, ErrUnknownOutcome)
	}
	return value, err
}
