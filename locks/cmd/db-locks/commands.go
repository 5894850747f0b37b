package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/locks"
)

// A command is one verb.
type command struct {
	what  string
	flags []flagOf
	needs []string // flags without which it makes no sense
	takes bool     // arguments
	alone bool     // it opens what it needs itself
	run   func(ctx context.Context, p *program, l *line) error
}

var commands map[string]command

// order is that in which help lists the commands: first those of the original program.
var order = []string{
	"acquire", "heartbeat", "release", "get-mutex", "delete-mutex", "create-mutex", "create-semaphore", "get-semaphore",
	"delete-semaphore", "get-semaphore-mutexes", "exec", "list", "purge", "revoke", "migrate", "doctor", "bench", "demo",
}

func init() {
	key := []string{"key"}
	keyVersion := []string{"key", "version"}
	taking := []flagOf{withKey, withLease, withSize("semaphore-max-size", "s"), withData, withWait}
	commands = map[string]command{
		"acquire": {"take a lock, and end; it lasts as long as its lease", taking, key, false, false, acquire},
		"heartbeat": {"renew the lease of a lock", []flagOf{withKey, withVersion, withLease, withSemaphore, withData},
			keyVersion, false, false, heartbeat},
		"release": {"give a lock back", []flagOf{withKey, withVersion, withSemaphore, withData},
			keyVersion, false, false, release},
		"get-mutex": {"show a mutex, or a permit of a semaphore", []flagOf{withKey}, key, false, false, getMutex},
		"delete-mutex": {"forget a mutex that nobody has", []flagOf{withKey, withVersion, withSemaphore},
			keyVersion, false, false, deleteMutex},
		"create-mutex": {"make a mutex before its first use", []flagOf{withKey, withLease, withData},
			key, false, false, createMutex},
		"create-semaphore": {"make a semaphore, or give one another size",
			[]flagOf{withKey, withSize("max-size", "m"), withLease},
			[]string{"key", "max-size"}, false, false, createSemaphore},
		"get-semaphore": {"show a semaphore", []flagOf{withKey}, key, false, false, getSemaphore},
		"delete-semaphore": {"forget a semaphore of which nobody has a permit", []flagOf{withKey, withVersion},
			keyVersion, false, false, deleteSemaphore},
		"get-semaphore-mutexes": {"show all permits of a semaphore", []flagOf{withKey},
			key, false, false, getSemaphoreMutexes},
		"exec": {"run a command while it holds a lock: exec --key KEY -- COMMAND ARGS", taking,
			key, true, false, execute},
		"list": {"list the locks of the tenant", nil, nil, false, false, list},
		"revoke": {"end the leases of all who hold a lock, safely", []flagOf{withKey, withForce},
			key, false, false, revoke},
		"purge":   {"forget the locks of the tenant that nobody has used for a day", nil, nil, false, false, purge},
		"migrate": {"make the tables, or bring them to the newest version", nil, nil, false, false, migrate},
		"doctor":  {"look whether the store can do what is needed, and how fast", nil, nil, false, false, doctor},
		"bench":   {"measure the store, for a few seconds, on locks of its own", nil, nil, false, false, bench},
		"demo": {"twenty processes, a counter under a lock, some of them stopped and killed", []flagOf{withDemo},
			nil, false, true, demo},
		"help": {"say how a command is used", nil, nil, true, true, nil},
	}
}

// options are those of a lock. A semaphore that is not there is made with the size that was
// given; one that is there keeps its own.
func (p *program) options(l *line) []locks.LockOption {
	opts := []locks.LockOption{locks.LeaseFor(time.Duration(l.lease)), locks.Wait(time.Duration(l.lease) + 100*time.Millisecond)}
	if l.flags.Changed("wait") {
		opts = append(opts, locks.Wait(time.Duration(l.wait)))
	}
	if l.noWait {
		opts = append(opts, locks.NoWait())
	}
	if l.flags.Changed("data") {
		opts = append(opts, locks.Data(l.data))
	}
	if l.size > 1 || p.cfg.Fair || l.size == 0 || l.size < -1 {
		size := l.size
		if size == -1 {
			size = 1
		}
		opts = append(opts, locks.Permit(size))
	}
	return opts
}

func acquire(ctx context.Context, p *program, l *line) error {
	hold, err := p.m.Acquire(ctx, l.key, append(p.options(l), locks.NoRenew())...)
	if err != nil {
		return err
	}
	if err := p.acquired(ctx, l, hold); err != nil { // nobody knows of the lease, so nobody could give it back
		return errors.Join(err, hold.Release(ctx))
	}
	return nil
}

// acquired tells what was acquired.
func (p *program) acquired(ctx context.Context, l *line, hold *locks.Hold) error {
	record, err := p.m.Get(ctx, l.key)
	if err != nil {
		return err
	}
	m, err := p.heldBy(record, hold.Version())
	if err != nil {
		return err
	}
	return p.print(m, "acquired lock %s", m)
}

// heldBy is what the holder with that version has of a lock.
func (p *program) heldBy(r locks.Record, version string) (mutexRecord, error) {
	for i := range r.Holders {
		if r.Holders[i].Version == version {
			return p.mutexOf(r, r.Holders[i].Slot, &r.Holders[i]), nil
		}
	}
	return mutexRecord{}, fmt.Errorf("the lease of %q has ended by now: %w", r.Key, locks.ErrNotOwner)
}

// target is the key of the lock that -k and -s mean: that of the semaphore, if it is one.
func (p *program) target(l *line) string {
	if l.semaphore != "" {
		return l.semaphore
	}
	if s, _, _, ok := semaphoreOf(l.key); ok && p.cfg.Fair {
		return s
	}
	return l.key
}

func (p *program) dataOption(l *line) (opts []locks.LockOption) {
	if l.flags.Changed("data") {
		opts = append(opts, locks.Data(l.data))
	}
	return opts
}

func heartbeat(ctx context.Context, p *program, l *line) error {
	opts := append(p.dataOption(l), locks.LeaseFor(time.Duration(l.lease)))
	if !p.cfg.Fair {
		opts = append(opts, locks.RotateVersion())
	}
	grant, err := p.m.Heartbeat(ctx, p.target(l), l.leaseVersion, opts...)
	if err != nil {
		return err
	}
	record, err := p.m.Get(ctx, p.target(l))
	if err != nil {
		return err
	}
	m, err := p.heldBy(record, grant.Version)
	if err != nil {
		return err
	}
	return p.print(m, "renewed lock %s", m)
}

func release(ctx context.Context, p *program, l *line) error {
	if err := p.m.ReleaseVersion(ctx, p.target(l), l.leaseVersion, p.dataOption(l)...); err != nil {
		return err
	}
	return p.print(true, "released lock %v", true)
}

func getMutex(ctx context.Context, p *program, l *line) error {
	record, err := p.m.Get(ctx, l.key)
	m := p.slotOf(record, 0)
	if semaphore, slot, version, ok := semaphoreOf(l.key); ok && errors.Is(err, locks.ErrNotFound) {
		m, err = p.permit(ctx, semaphore, slot, version)
	}
	if err != nil {
		return err
	}
	return p.print(m, "found lock %s", m)
}

// permit finds a permit of a semaphore by its slot, or by the version of its lease.
func (p *program) permit(ctx context.Context, semaphore string, slot int, version string) (mutexRecord, error) {
	record, err := p.m.Get(ctx, semaphore)
	switch {
	case err != nil:
		return mutexRecord{}, err
	case record.Kind != locks.Semaphore || slot >= record.Size:
		return mutexRecord{}, locks.ErrNotFound
	case version == "":
		return p.slotOf(record, slot), nil
	}
	m, err := p.heldBy(record, version)
	if errors.Is(err, locks.ErrNotOwner) {
		err = locks.ErrNotFound
	}
	return m, err
}

// slotOf is what there is in a slot of a lock.
func (p *program) slotOf(r locks.Record, slot int) mutexRecord {
	for i := range r.Holders {
		if r.Holders[i].Slot == slot {
			return p.mutexOf(r, slot, &r.Holders[i])
		}
	}
	return p.mutexOf(r, slot, nil)
}

func deleteMutex(ctx context.Context, p *program, l *line) error {
	if l.semaphore != "" {
		return usagef("a permit of a semaphore cannot be deleted: see create-semaphore and delete-semaphore")
	}
	if err := p.m.Delete(ctx, l.key, l.leaseVersion); err != nil {
		return err
	}
	return p.print(1, "deleted lock %d", 1)
}

func createMutex(ctx context.Context, p *program, l *line) error {
	record, err := p.m.CreateMutex(ctx, l.key, append(p.dataOption(l), locks.LeaseFor(time.Duration(l.lease)))...)
	if err != nil {
		return err
	}
	m := p.mutexOf(record, 0, nil)
	return p.print(m, "created mutex %s", m)
}

func createSemaphore(ctx context.Context, p *program, l *line) error {
	record, err := p.m.CreateSemaphore(ctx, l.key, l.size, locks.LeaseFor(time.Duration(l.lease)), locks.Fair(true))
	if err != nil {
		return err
	}
	s := semaphoreRecordOf(record)
	return p.print(s, "created semaphore %s", s)
}

// semaphoreRecordOf finds a semaphore.
func (p *program) semaphoreRecord(ctx context.Context, key string) (locks.Record, error) {
	record, err := p.m.Get(ctx, key)
	if err == nil && record.Kind != locks.Semaphore {
		err = fmt.Errorf("%q is a %s: %w", key, record.Kind, locks.ErrConflict)
	}
	return record, err
}

func getSemaphore(ctx context.Context, p *program, l *line) error {
	record, err := p.semaphoreRecord(ctx, l.key)
	if err != nil {
		return err
	}
	s := semaphoreRecordOf(record)
	return p.print(s, "found semaphore %s", s)
}

func deleteSemaphore(ctx context.Context, p *program, l *line) error {
	if _, err := p.semaphoreRecord(ctx, l.key); err != nil {
		return err
	}
	if err := p.m.Delete(ctx, l.key, l.leaseVersion); err != nil {
		return err
	}
	return p.print(1, "deleted semaphore %d", 1)
}

func getSemaphoreMutexes(ctx context.Context, p *program, l *line) error {
	record, err := p.semaphoreRecord(ctx, l.key)
	if err != nil {
		return err
	}
	all := []mutexRecord{}
	text := fmt.Sprintf("found %d semaphore mutexes:", record.Size)
	for slot := range record.Size {
		m := p.slotOf(record, slot)
		all = append(all, m)
		text += "\n\t" + m.String()
	}
	return p.print(all, "%s", text)
}

func revoke(ctx context.Context, p *program, l *line) error {
	n, err := p.m.Revoke(ctx, l.key, locks.RevokeOption(l.force))
	if err != nil {
		return err
	}
	if l.force {
		return p.print(n, "revoked leases: %d; others may be granted the lock from now on", n)
	}
	return p.print(n, "revoked leases: %d; nobody else is granted the lock before their holders have given it back, or their leases have run out", n)
}

// A listed is a line of list.
type listed struct {
	Key       string    `json:"key"`
	TenantID  string    `json:"tenant_id"`
	Kind      string    `json:"kind"`
	Size      int       `json:"size"`
	BusyCount int       `json:"busy_count"`
	Waiting   int       `json:"waiting"`
	UpdatedBy string    `json:"updated_by"`
	UpdatedAt naiveTime `json:"updated_at"`
	Fence     int64     `json:"fencing_token"`
}

func list(ctx context.Context, p *program, _ *line) error {
	after, n := "", 0
	for {
		page, err := p.m.List(ctx, after, 500)
		if err != nil {
			return err
		}
		for _, r := range page {
			after = r.Key
			n++
			err := p.print(listed{r.Key, r.Tenant, r.Kind.String(), r.Size, r.Busy, r.Waiters, r.UpdatedBy, naiveTime(r.UpdatedAt), r.Fence},
				"%q %s busy=%d/%d waiting=%d updated=%s by %q", r.Key, r.Kind, r.Busy, r.Size, r.Waiters, naiveTime(r.UpdatedAt), r.UpdatedBy)
			if err != nil {
				return err
			}
		}
		if len(page) == 0 {
			break
		}
	}
	if n == 0 && !p.cfg.json {
		_, err := fmt.Fprintf(p.stdout, "no locks of tenant %q\n", p.cfg.Tenant)
		return err
	}
	return nil
}

func purge(ctx context.Context, p *program, _ *line) error {
	all := 0
	for {
		const most = 1000
		n, err := p.m.Purge(ctx, most)
		if err != nil {
			return err
		}
		if all += n; n < most {
			return p.print(all, "forgot locks: %d", all)
		}
	}
}

// migrate has nothing more to do: opening a store has made its tables, or brought them to
// the newest version.
func migrate(_ context.Context, p *program, _ *line) error {
	return p.print(true, "the %s store is ready, its tables have the newest version", p.store.Traits().Name)
}
