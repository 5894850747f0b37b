package locks

import (
	"context"
	"time"
)

// A Store keeps locks. Every method that changes something is one atomic step,
// decided by the clock of the store. All of them may be called by any number of
// goroutines. docs/locks.md says why each step is as it is, and package lockstest
// tests what a store promises.
//
// The error of a method is one of two sorts. [ErrConflict], [ErrNotFound],
// [ErrNotOwner] and [ErrValidation] say that nothing was changed. After any other
// error, which matches [ErrUnavailable], the step may have been done or not. Every
// step may be repeated: what it names, it names by an ID or a version that its caller
// has made, and done twice it is as done once.
//
// A manager asks for nothing that it finds wrong itself: keys have 1 to 1,024 bytes, tenants
// and owners up to 255, data up to 64 KiB, and sizes are from 1 to 1,000. Every method ends
// soon after its context.
//
// Most users make a store with its package (sqlitestore, redisstore and so on), give
// it to [New], and call none of its methods.
type Store interface {
	// Acquire asks for one lock, for all the requests that this process has for it. In
	// one step it removes what has expired, enters requests that are new at the end of
	// the queue, keeps alive those that wait, and grants those whose turn it is.
	//
	// An ID that holds the lock already is granted it again, with its fence, and its
	// lease is counted from now; it never gets shorter. A waiting request is forgotten
	// [WaiterLife] after the last Acquire that named it, or a sixth of that less where the
	// store does not write what it wrote a moment ago; then it is a new one.
	// A request that does not wait and is not granted leaves nothing behind.
	Acquire(ctx context.Context, name Name, requests []Request) (Turn, error)
	// Release gives a lock back, or withdraws a request that waits. It says false if
	// there was nothing of that ID (or version) to give back. data is the new data of
	// the lock, nil to leave it as it is.
	Release(ctx context.Context, name Name, ref Ref, data *string) (bool, error)
	// Renew gives leases more time, counted from now. It never makes one shorter. The
	// results have the order of the renewals. A row that is locked by somebody else for the moment is
	// Skipped: it is for the caller to ask again for that one alone.
	Renew(ctx context.Context, renewals []Renewal) ([]RenewResult, error)
	// Listen returns a channel that gets a value when a request of this process for the
	// lock may have become grantable. It holds one value, so a hint that comes before
	// anybody waits for it is not lost. It is a hint: nothing depends on it. stop ends it.
	Listen(name Name) (hints <-chan struct{}, stop func())

	// Create makes the record of a lock before its first use, or gives an idle one
	// another size, lease, fairness or data. The kind of a record never changes.
	// A semaphore in use takes its new size at once: nobody is granted anything until
	// there is room. A record of another kind is [ErrConflict].
	Create(ctx context.Context, record Record) (Record, error)
	// Get returns the record of a lock, with its holders and how many wait.
	// [ErrNotFound]: there is none.
	Get(ctx context.Context, name Name) (Record, error)
	// List returns up to most records of a tenant in the order of their keys (bytewise),
	// from the first key greater than after. Holders are left out.
	List(ctx context.Context, tenant, after string, most int) ([]Record, error)
	// Delete forgets a record. One that is held, waited for or shut is [ErrConflict], so is
	// one of another version, unless version is empty. [ErrNotFound]: there is none.
	Delete(ctx context.Context, name Name, version string) error
	// Purge deletes records of a tenant that nobody has used for as long as their Retention,
	// at most that many, and says how many it has deleted. Each Acquire that makes a record
	// has two others at most go in the same way, soon after, where the store can find them.
	Purge(ctx context.Context, tenant string, most int) (int, error)
	// Revoke has the leases of a lock that ref names, all of them if it is empty, never
	// be renewed again. Their holders are told at their next renewal, and nobody else is
	// granted the lock before they have given it back or their leases have run out. force ends
	// them at once, also what the clock of the store takes for a lease that lasts, and opens a
	// lock that is shut; of all leases it has the requests that wait be forgotten, too. It says
	// how many leases.
	Revoke(ctx context.Context, name Name, ref Ref, force bool) (int, error)

	// Traits says what the store can do. It is the same for its whole life.
	Traits() Traits
	// Close gives up what the store has opened itself. It releases no lock.
	Close() error
}

// A Resumer is a store that can tell when it was reached again after it could not be, and may
// be another server by then, or have forgotten what it was told last. The manager then renews
// all that it holds at once: a lock that was forgotten is lost soon, not at the next renewal.
type Resumer interface {
	// Resumed has f called, in a goroutine of the store, each time that happens. f does not
	// block. stop ends it.
	Resumed(f func()) (stop func())
}

// A Fencer is a store in a SQL database, where a user's own transaction can check a lease:
// see package fence.
type Fencer interface {
	// FenceQueries returns two statements, which are made one after the other in one
	// transaction. Each returns one row with one integer. The first locks the record of a
	// lock until the end of the transaction, so that nobody is granted the lock before.
	// The second says how many microseconds the lease of that ID lasts; not more than 0 if
	// there is none.
	FenceQueries(name Name, id string) (lock, left Query)
}

// A Query is a statement with its parameters.
type Query struct {
	SQL  string
	Args []any
}

// WaiterLife is how long a request that waits is kept after the last Acquire that
// named it, or up to a sixth of that less, see [Store]: requests of dead processes hold nobody up for longer.
const WaiterLife = 3 * time.Second

// A Name is which lock is meant. Both parts may hold any bytes. Locks of two tenants
// have nothing to do with each other.
type Name struct {
	Tenant string
	Key    string
}

// A Kind is what sort of lock a record is. It never changes while the record exists.
type Kind uint8

const (
	Mutex     Kind = iota + 1 // one holder
	Semaphore                 // Size permits
	ReadWrite                 // any number of readers, or one writer
)

// String returns the kind in lower case.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return kinds[0]
}

var kinds = [...]string{"unknown", "mutex", "semaphore", "rwlock"}

// A Request asks for a lock, or for a part of it.
type Request struct {
	// ID names the request and the lease that comes of it: 128 random bits, made by the
	// client and known to nobody else.
	ID string
	// Version names the lease to others, in place of the ID: the command line and its
	// users have it. A renewal may change it.
	Version string
	Owner   string // says to people who holds the lock

	Kind   Kind
	Shared bool // ReadWrite: for reading
	// Size is that of a Semaphore which the request makes. One that is there has the size of
	// its record, and the request is granted if what is held with it is not more than that
	// and, if it is not 0, not more than Size.
	Size    int
	Permits int // Semaphore: how many are asked for

	Lease   time.Duration
	Wait    bool // stay in the queue if it is not granted
	Barging bool // may be granted before earlier requests that wait
	// LockDelay is how long nobody is granted the lock after this lease has expired.
	LockDelay time.Duration
	Data      *string // new data of the lock, if it is granted

	// Retention is how long the record stays when nobody uses it any more, if this request
	// makes it. 0: until it is deleted. One that has data, or that a Create has written,
	// stays in any case.
	Retention time.Duration
	// Brief says that a record which this request makes is deleted with its last lease, or the
	// last request that waits, if it is not shut, unless a Create or a Resize has written it since.
	Brief           bool
	OnlyIfExists    bool // a record that does not exist is ErrNotFound
	DeleteOnRelease bool // the record is deleted with its last lease, if nobody waits and it is not shut
	Resize          bool // a semaphore of another size gets Size
	Strict          bool // a semaphore of another size is ErrConflict
}

// A Turn is what an Acquire has found.
type Turn struct {
	Now time.Time // by the clock of the store
	// Next is when more might be granted by the mere passing of time: when the nearest
	// lease expires or the lock is no longer shut. Zero: never.
	Next    time.Time
	Size    int      // how many permits there are in all
	Answers []Answer // in the order of the requests
}

// An Answer is what became of one request.
type Answer struct {
	Granted bool
	Grant   Grant // if it was granted
	Place   int   // else: how many requests wait before it
	Holder  string
	Err     error // ErrConflict, ErrNotFound: this request is refused, and forgotten
}

// A Grant is a lease as the store has it.
type Grant struct {
	ID       string `json:"-"` // only for the caller that has made it: it gives power over the lease
	Version  string
	Owner    string
	Fence    int64
	Slot     int // from 0: no two leases of a lock have the same at a time
	Permits  int
	Shared   bool
	Revoked  bool
	Lease    time.Duration
	Acquired time.Time
	Expires  time.Time
}

// A Ref says which lease of a lock is meant, by its ID or by its version. A version
// that the last renewal has replaced still counts.
type Ref struct {
	ID      string
	Version string
}

// A Renewal asks for more time for one lease.
type Renewal struct {
	Name
	Ref
	Lease      time.Duration
	NewVersion string  // if not empty: the version from now on
	Data       *string // if not nil: the data of the lock from now on
}

// A RenewVerdict is what became of a renewal.
type RenewVerdict uint8

const (
	Extended RenewVerdict = iota + 1
	NotYours              // the lease has expired, or was given back
	Revoked               // not extended: somebody wants it to end
	Skipped               // nothing is known: ask for this one alone
)

// A RenewResult is what became of a renewal.
type RenewResult struct {
	Verdict RenewVerdict
	Grant   Grant // if it was extended
}

// A Record is a lock as the store has it.
type Record struct {
	Name
	Kind            Kind
	Size            int
	Lease           time.Duration
	Fair            bool
	Data            *string
	DeleteOnRelease bool
	LockDelay       time.Duration
	Version         string // of the record; a mutex that is held has that of its lease
	Fence           int64  // the last that was given
	Busy            int    // permits that are held
	Waiters         int
	Holders         []Grant // in the order of their fences
	CreatedBy       string
	CreatedAt       time.Time
	UpdatedBy       string
	UpdatedAt       time.Time
}

// Traits are what a store can do.
type Traits struct {
	Name string // "sqlite", "redis" and so on
	// MinLease is the shortest lease that makes sense here.
	MinLease time.Duration
	// Simple: no read-write locks, no requests for several permits, no WithAll.
	Simple bool
	// Hints: Listen tells of most changes at once. Without, waiting requests are asked
	// for more often.
	Hints bool
}
