package locks

import (
	"fmt"
	"math"
	"os"
	"time"
)

// An Option is a setting of a [Manager].
type Option interface{ applyManager(*settings) error }

// A LockOption is a setting of one call for a lock.
type LockOption interface{ applyLock(*call) error }

// settings are those of a manager.
type settings struct {
	tenant  string
	lease   time.Duration
	owner   string
	retain  time.Duration
	observe []func(Event)
}

type managerOption func(*settings) error

func (f managerOption) applyManager(s *settings) error { return f(s) }

type lockOption func(*call) error

func (f lockOption) applyLock(c *call) error { return f(c) }

// set is an option that is never wrong by itself.
func set(f func(c *call)) LockOption {
	return lockOption(func(c *call) error {
		f(c)
		return nil
	})
}

// Tenant says to whom the locks belong: those of two tenants have nothing to do with
// each other. Defaults to "default". It may hold any bytes, at most 255.
func Tenant(name string) Option {
	return managerOption(func(s *settings) error {
		s.tenant = name
		return checkText("Tenant", name, maxTenant)
	})
}

// Lease is how long a lock stays a holder's that is not heard of any more: it is
// renewed from 0.30 of that on. From the MinLease of the store (most often 500 ms) to
// 24 h; defaults to 15 s. [LeaseFor] says it for one lock.
func Lease(d time.Duration) Option {
	return managerOption(func(s *settings) error {
		s.lease = d
		return nil // New knows the store
	})
}

// Retention is how long the store keeps the record of a lock that nobody uses any more, if a
// call for the lock has made it: a record that was made by [Manager.CreateMutex] or
// [Manager.CreateSemaphore], or that has [Data], stays until it is deleted. Nothing runs for
// it: a call that makes a record has two others go, and [Manager.Purge] all of them. Tokens go
// on: they never go back. Defaults to a day. 0: a record that a call has made goes with its last
// lease, or with the last request that waits, and about a minute later if they end by a death.
func Retention(d time.Duration) Option {
	return managerOption(func(s *settings) error {
		if d < 0 {
			return &ValidationError{"Retention", fmt.Sprintf("%v is less than nothing", d)}
		}
		if s.retain = d; d > 0 {
			s.retain = max(d, time.Microsecond) // stores count those
		}
		return nil
	})
}

// Owner is what people are shown who ask who holds a lock. Defaults to the name of the
// host and the number of the process. At most 255 bytes.
func Owner(name string) Option {
	return managerOption(func(s *settings) error {
		s.owner = name
		return checkText("Owner", name, maxOwner)
	})
}

func defaultOwner() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	return fmt.Sprintf("%.200s/%d", host, os.Getpid())
}

// forever is the Wait of a call that has none.
const forever time.Duration = -1

// A call is what a caller wants of a lock.
type call struct {
	kind    Kind
	shared  bool
	size    int
	permits int
	resize  bool
	strict  bool

	lease     time.Duration
	wait      time.Duration // forever, 0 for not at all
	barging   bool
	data      *string
	exists    bool
	deletes   bool
	progress  time.Duration // 0: it needs none
	delay     time.Duration
	reentrant bool
	overrun   func(*LostError)
	unrenewed bool
	rotate    bool // Heartbeat only
	run       *run // of the body, if several calls share it; nil: a grant makes one
}

// Wait is how long to wait for the lock at most. Defaults to as long as ctx lasts. Wait(0)
// is [NoWait].
func Wait(d time.Duration) LockOption {
	return lockOption(func(c *call) error {
		if d < 0 {
			return &ValidationError{"Wait", fmt.Sprintf("%v is less than nothing: leave the option out to wait as long as ctx lasts", d)}
		}
		c.wait = d
		return nil
	})
}

// NoWait has a call fail at once, with a [*NotGrantedError], if the lock is not free.
func NoWait() LockOption { return Wait(0) }

// LeaseFor is [Lease] for one lock. With [Manager.Heartbeat] it is what the lease gets.
func LeaseFor(d time.Duration) LockOption { return set(func(c *call) { c.lease = d }) }

// Fair says whether requests are granted in the order in which they came, which is the
// default. One that is not fair is granted before all that wait if there is room for it:
// that is quicker for its caller, and the others may wait for ever.
func Fair(fair bool) LockOption { return set(func(c *call) { c.barging = !fair }) }

// Data is a text that is kept with the lock, for others to see, from the grant on. At
// most 64 KiB.
func Data(s string) LockOption {
	return lockOption(func(c *call) error {
		c.data = &s
		return checkData(s)
	})
}

// OnlyIfExists has a call for a lock that the store has no record of fail with
// [ErrNotFound]. Without, the record is made.
func OnlyIfExists() LockOption { return set(func(c *call) { c.exists = true }) }

// DeleteOnRelease has the record of the lock deleted when it is given back and nobody
// waits for it, unless a [LockDelay] keeps it shut. Tokens go on: they never go back.
func DeleteOnRelease() LockOption { return set(func(c *call) { c.deletes = true }) }

// RequireProgress has the lease renewed only while the body says that it gets on, by
// [Hold.Progress], at least every d. One that hangs loses the lock when its lease has
// run out; the reason is [LostStalled]. d is counted from the grant, too; with
// [Manager.WithAll] from when all locks were granted.
func RequireProgress(d time.Duration) LockOption {
	return lockOption(func(c *call) error {
		if d <= 0 {
			return &ValidationError{"RequireProgress", fmt.Sprintf("%v is no time: nothing is quick enough", d)}
		}
		c.progress = d
		return nil
	})
}

// LockDelay keeps the lock shut for d after this lease has *expired*, for writes that
// were begun before and are still on their way. A lock that is given back is free at
// once. At most 24 h. The idea is that of Chubby (Burrows, 2006).
func LockDelay(d time.Duration) LockOption {
	return lockOption(func(c *call) error {
		if d < 0 || d > maxLease {
			return &ValidationError{"LockDelay", fmt.Sprintf("%v is not from 0 to %v", d, maxLease)}
		}
		c.delay = d
		return nil
	})
}

// Reentrant has a call whose ctx holds the lock already run under that lease: nothing is
// asked of the store, and nothing is given back at its end. The other options are those of
// the outer call. It gives no exclusion between the tasks of one body. Without it, such a
// call fails with [ErrReentrant]; so does a call to write under a lease to read, and one for
// a second permit of a semaphore, in any case: they could wait for themselves.
func Reentrant() LockOption { return set(func(c *call) { c.reentrant = true }) }

// OnOverrun has f called, once, when somebody else may be granted the lock from now on and
// the body still runs: its context was cancelled a while ago and it has not returned. It is
// called beside the body, on a goroutine of its own, and the call that has the body waits
// for it. The way to stop a body that does not look at its context is for f to decide: to end
// the process is one answer.
func OnOverrun(f func(*LostError)) LockOption {
	return lockOption(func(c *call) error {
		if f == nil {
			return &ValidationError{"OnOverrun", "the function is nil: leave the option out"}
		}
		c.overrun = f
		return nil
	})
}

// NoRenew leaves the lease as long as it was granted, unless [Hold.Extend] gives it more.
func NoRenew() LockOption { return set(func(c *call) { c.unrenewed = true }) }

// AsRecorded in place of the size of a semaphore never makes one: a call for a semaphore
// that the store has no record of fails with [ErrNotFound].
const AsRecorded = math.MinInt32 // no number that somebody computes

// Permit makes [Manager.Acquire] ask for one permit of a semaphore of a size, as
// [Manager.WithPermit] does.
func Permit(size int) LockOption { return Permits(size, 1) }

// Permits makes [Manager.Acquire] ask for n permits of a semaphore of a size, all at
// once, as [Manager.WithPermits] does.
func Permits(size, n int) LockOption {
	return lockOption(func(c *call) error {
		c.kind, c.shared, c.size, c.permits = Semaphore, false, size, n
		if size == AsRecorded {
			c.size, c.exists = 0, true
			return checkPermits(maxSize, n)
		}
		return checkPermits(size, n)
	})
}

// Read makes [Manager.Acquire] ask for a read-write lock beside other readers, as
// [Manager.WithRead] does.
func Read() LockOption {
	return set(func(c *call) { c.kind, c.shared, c.size, c.permits = ReadWrite, true, 0, 1 })
}

// Write makes [Manager.Acquire] ask for a read-write lock alone, as [Manager.WithWrite]
// does.
func Write() LockOption {
	return set(func(c *call) { c.kind, c.shared, c.size, c.permits = ReadWrite, false, 0, 1 })
}

// Resize gives a semaphore that has another size the size that is asked for. One that shrinks
// below what is held takes nothing away: nobody is granted a permit until there is room. It
// happens once, when the request comes: a size that somebody gives the semaphore while the
// request waits is not undone.
func Resize() LockOption { return set(func(c *call) { c.resize = true }) }

// Strict has a call that names another size than a semaphore has fail with [ErrConflict].
func Strict() LockOption { return set(func(c *call) { c.strict = true }) }

// RotateVersion has [Manager.Heartbeat] give the lease another version. The one before
// still counts until the next.
func RotateVersion() LockOption { return set(func(c *call) { c.rotate = true }) }
