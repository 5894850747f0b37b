package kvqueue

import (
	"context"
	"errors"
	"iter"
	"time"
)

// A Rev is a revision of a store: it grows with each transaction that changes something.
type Rev int64

// A Pair is a key of a store, as it was at a revision.
type Pair struct {
	Key   []byte
	Value []byte
	Rev   Rev // that of the transaction that wrote it last
}

// A Range is what is to be read: the keys from Begin to before End. A nil End is the key
// Begin alone. A result of a store has Limit pairs at most, the first in the order of
// bytes; 0 is no limit. With KeysOnly the values stay away.
type Range struct {
	Begin, End []byte
	Limit      int
	KeysOnly   bool
}

// A Result is what a [Range] holds.
type Result struct {
	Pairs []Pair
	More  bool // Limit has cut it
}

// A Condition is what a [Guard] demands.
type Condition uint8

const (
	// Unchanged demands that the key was written last at the guard's Rev.
	Unchanged Condition = iota
	// Absent demands that the key does not exist; with an End, that no key of the range does.
	Absent
	// Present demands that the key exists.
	Present
	// Below demands that the key exists and its value is less than the guard's Value, in the
	// order of bytes.
	Below
)

// A Guard is a condition on which a transaction depends.
type Guard struct {
	Key   []byte
	End   []byte // only with Absent: the guard is of a range
	Is    Condition
	Rev   Rev    // of Unchanged
	Value []byte // of Below
}

// A Write puts a key, or deletes it. A key that is put with a session vanishes with it; if
// the session has ended nothing of the transaction is done, which is [ErrConflict]. No
// transaction writes one key twice.
type Write struct {
	Key     []byte
	Value   []byte
	Delete  bool
	Session Session // nil: the key stays until it is deleted
}

// An Event is a change of a key that was watched. Value and Rev are those of the write; a
// deletion has no value.
type Event struct {
	Pair
	Deleted bool
}

// A Session is the liveness of one process, judged by the clock of the store. It ends
// when it was not renewed for its TTL, and every key that was put with it vanishes then, all
// of them at one revision.
type Session interface {
	// ID tells it from all other sessions of the store, past ones too.
	ID() int64
	// Renew has the TTL begin anew. It returns [ErrSessionLost] if the session has ended.
	Renew(ctx context.Context) error
	// End ends it now. It may be called on a session that has ended.
	End(ctx context.Context) error
}

// Limits are what a transaction of a store may hold.
type Limits struct {
	Guards int           // guards of a transaction
	Writes int           // writes of a transaction
	Bytes  int           // keys and values of a transaction, together
	MinTTL time.Duration // of a session
	// Compaction says that the store keeps what was deleted until somebody compacts it.
	Compaction bool
	// Updates says that the store is an [Updater], and not only something around one.
	Updates bool
}

// A KV is an ordered store with transactions over several keys: what etcd, FoundationDB
// and an embedded tree can all do. Its methods may be called by any number of goroutines.
// Each returns when ctx ends, with an error that matches that of ctx. An argument of a call must
// not be changed later: a call that has returned because ctx has ended may be on its way.
type KV interface {
	// Read reads ranges, all of them as they were at one revision, which it returns. It
	// sees every transaction whose Commit returned before Read was called.
	Read(ctx context.Context, ranges ...Range) ([]Result, Rev, error)

	// Commit does all of the writes at one revision if every guard holds, and returns that.
	// If one does not hold nothing is written: then the error is [ErrConflict], and the
	// revision is one at which it did not hold. An error that matches neither that nor
	// [ErrUnknown] says that nothing was written and nothing will be. [ErrUnknown] says that
	// the transaction was done, or was not, or will be.
	Commit(ctx context.Context, guards []Guard, writes []Write) (Rev, error)

	// Watch yields the changes after a revision of all keys that begin with one of the
	// prefixes; those of one prefix in the order of their revisions. It may leave out all puts of
	// one key but the last, if another followed before it was yielded. It ends when ctx does.
	// [ErrCompacted] says that the store does not know any more what has changed: read, and watch
	// from there. After an error it yields nothing more. A key that has vanished with a session is
	// a change, too.
	Watch(ctx context.Context, after Rev, prefixes ...[]byte) iter.Seq2[Event, error]

	// Session begins a session that ends when it was not renewed for ttl.
	Session(ctx context.Context, ttl time.Duration) (Session, error)

	// Limits returns what a transaction may hold. They do not change.
	Limits() Limits
}

// A Compacter is a [KV] that keeps what was deleted until it is told to forget it.
type Compacter interface {
	// Compact forgets what was deleted or overwritten at the revision or before.
	Compact(ctx context.Context, before Rev) error
}

// An Updater is a [KV] that can read and write in one transaction, so that nobody writes between.
// A queue claims by it: then no claim spoils another, and none has to wait for its turn.
type Updater interface {
	// Glance is Read for what is only used to decide what to write: it may show what the store can still lose, as in a power
	// failure. When a transaction that was called later has returned, that stays, too.
	Glance(ctx context.Context, ranges ...Range) ([]Result, Rev, error)

	// Update reads ranges and calls decide with them and their revision, which returns what is to
	// be done then, as Commit would do it. If decide returns an error that is the answer, and
	// nothing is written. decide must be quick, and may be called several times, of which the last
	// counts; it is not called after Update has returned.
	Update(ctx context.Context, ranges []Range, decide func(results []Result, rev Rev) ([]Guard, []Write, error)) (Rev, error)
}

// Errors of a [KV]. Those of a store say more, and match these.
var (
	// ErrConflict says that a guard did not hold, and nothing was written.
	ErrConflict = errors.New("kvqueue: a guard does not hold")
	// ErrUnknown says that the answer to a transaction was lost: it was done, or was not, or
	// will be.
	ErrUnknown = errors.New("kvqueue: it is not known whether the transaction was done")
	// ErrCompacted says that changes are not known any more.
	ErrCompacted = errors.New("kvqueue: the store has forgotten these changes")
	// ErrSessionLost says that a session has ended.
	ErrSessionLost = errors.New("kvqueue: the session has ended")
	// ErrNoSpace says that the store takes no more data. On etcd a claimed item can be
	// acknowledged, which makes room; on a full disk SQLite writes nothing.
	ErrNoSpace = errors.New("kvqueue: the store is full")
)
