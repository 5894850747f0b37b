package taskqueue

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/taskqueue/store"
)

// A Store keeps tasks. Every method is one atomic step: it is validated before the
// first write, so nothing is half done, whatever happens. All of them may be called
// by any number of goroutines. The rules R1 to R12 in docs/taskqueue.md are what a
// store promises; package taskqueuetest tests them.
//
// A method that returns an error may have been carried out or not, unless the error
// is an [*InvalidError], which says that nothing was changed. The promises of the methods for being
// called again with the same arguments are said with each.
type Store interface {
	// Enqueue adds tasks to one queue, all or none. They have an ID and all defaults. A task whose ID is known is not changed.
	// Called again it says Exists of what it has added. The error is an [*InvalidError] if a task that
	// is not known is to run after one that is not known either, and matches a [*DuplicateError] if
	// that was not added by the same call because of its unique key.
	Enqueue(ctx context.Context, queue string, tasks []Task) ([]Result, error)
	// Claim takes due tasks under a lease, after it has given back what expired.
	// Called again with the nonce of the worker's last claim it takes nothing new: it
	// answers with those of that claim that are still under their tokens, with a
	// fresh lease.
	Claim(ctx context.Context, r store.ClaimRequest) (Claimed, error)
	// Extend gives leases more time, counted from now by the clock of the store.
	Extend(ctx context.Context, r store.ExtendRequest) ([]store.ExtendResult, error)
	// Settle says how runs have ended. An outcome counts as long as the token is
	// that of the last claim. Called again it says Settled of what it has settled.
	Settle(ctx context.Context, queue string, outcomes []store.Outcome) ([]store.SettleResult, error)
	// Wait returns when something in the queue may have become due earlier than what
	// the claim has said that seen is of, also if that was before Wait is called, or at
	// until. It is a hint: nothing depends on it, and a store that knows who waits may tell
	// no more of them than there are tasks.
	Wait(ctx context.Context, queue string, seen uint64, until time.Time) error

	// Get returns what is known of a task, [ErrNotFound] if nothing is.
	Get(ctx context.Context, queue, id string) (Info, error)
	// List returns tasks in a state, in the order of when they are due or have ended;
	// running ones, and those that are limited, which come last of the ready ones, in an order of the
	// store. A page may be short, or empty, and yet have
	// a Cursor: it holds at most about MaxBatchBytes, and looks at MaxBatch tasks at most.
	List(ctx context.Context, queue string, r ListRequest) (Page, error)
	// Queues returns the names of all queues, sorted.
	Queues(ctx context.Context) ([]string, error)
	// Stats returns the figures of a queue.
	Stats(ctx context.Context, queue string) (Stats, error)
	// Act does one of the acts of administration to a task. It says false if the
	// task is in no state for it, and [ErrNotFound] if there is no such task. The
	// error of ActRetry is a [*DuplicateError] if another task holds the unique key.
	Act(ctx context.Context, queue, id string, act store.Act) (bool, error)
	// Purge deletes tasks in a state, behind the cursor, and returns how many and the
	// next cursor: it looks at up to MaxBatch of them, and up to about MaxBatchBytes. No
	// cursor: from the first, or there are no more. Running ones cannot be deleted.
	Purge(ctx context.Context, queue string, s State, cursor string) (n int, next string, err error)
	// Configure sets the settings of a queue, if they are still what they were before, and says whether
	// they were.
	Configure(ctx context.Context, queue string, before, after Settings) (bool, error)
	// SetLimit sets the limit for the Key or Type of l in a queue, or takes it away if l lifts it.
	SetLimit(ctx context.Context, queue string, l Limit) error
	// Tick enqueues the task of a periodic job, unless a tick at or after that time
	// has been enqueued before, or the job is known with another schedule that is as
	// new. It says whether it did. A tick without At has no task: it only notes the
	// schedule, and says whether that is in force.
	Tick(ctx context.Context, t Tick) (bool, error)
	// Unschedule forgets a periodic job, and says whether it was known.
	Unschedule(ctx context.Context, queue, name string) (bool, error)
	// Periodic returns the periodic jobs of a queue.
	Periodic(ctx context.Context, queue string) ([]Periodic, error)
	// Close gives the store back. A call that waits returns [ErrClosed].
	Close() error
}

// A TxStore is a store in a database that people have their own tables in. Those of package
// sqlstore are.
type TxStore interface {
	Store
	// EnqueueTx is Enqueue in a transaction of the caller's, which it does not end: the tasks
	// exist if and only if that is committed. The error is an [*InvalidError] if tx is of no type
	// that the store knows, and matches [ErrOtherDatabase] if it is one of another database.
	EnqueueTx(ctx context.Context, tx any, queue string, tasks []Task) ([]Result, error)
}

// A Verdict says what became of a task that was to be added.
type Verdict uint8

const (
	Added     Verdict = iota + 1
	Exists            // a task of this ID is known
	Duplicate         // another task holds its UniqueKey
)

// String returns the verdict in lower case.
func (v Verdict) String() string {
	return [...]string{"", "added", "exists", "duplicate"}[min(v, 3)]
}

// A Result is what became of one task of an Enqueue.
type Result struct {
	Verdict Verdict
	ID      string // of the task; for Duplicate that of the one which holds the key
}

// Claimed is what a claim has got.
type Claimed struct {
	Now   time.Time // by the clock of the store
	Tasks []Info    // with the token of this claim
	// NextDue is when a claim could get something more: now if there is more; zero if
	// nothing is known that would.
	NextDue time.Time
	// Dead are the ids that this claim has made dead letters: their leases had run out
	// once too often, they had expired, or their records were lost.
	Dead []string
	// Trimmed is how many dead letters this claim has deleted, by MaxDead or DeadRetention.
	Trimmed int
	// Seen counts the hints that came before this claim. Wait is told it.
	Seen uint64
}

// A ListRequest asks for a page of tasks.
type ListRequest struct {
	State  State
	Cursor string // that of the page before
	Max    int    // 0: 100
	// Reverse turns the order around: what ended last comes first. A Cursor belongs to
	// the order in which it was made.
	Reverse bool
}

// A Page is some tasks, and where the next begins. No Cursor: there is none.
type Page struct {
	Tasks  []Info
	Cursor string
}

// Settings are what is set for a queue, for all processes.
type Settings struct {
	Paused        bool          `json:"paused,omitempty"`
	Rate          float64       `json:"rate,omitempty"`           // claims a second; 0: no limit
	Burst         int           `json:"burst,omitempty"`          // how many at once; at least 1 with a Rate
	Concurrency   int           `json:"concurrency,omitempty"`    // leases at a time; 0: no limit
	MaxDead       int           `json:"max_dead,omitempty"`       // dead letters kept; 0: all
	DeadRetention time.Duration `json:"dead_retention,omitempty"` // how long they are kept; 0: for ever
}

// Stats are figures of one queue.
type Stats struct {
	Queue    string            `json:"queue"`
	Settings Settings          `json:"settings"`
	States   map[State]int64   `json:"states"`
	Counts   map[Counter]int64 `json:"counts"` // since the queue was made
	Latest   time.Duration     `json:"latest"` // how late the task is that waits longest, but for those that are limited
	// Limited is how many of the ready tasks a limit of a key or a type keeps.
	Limited int64   `json:"limited,omitempty"`
	Limits  []Limit `json:"limits,omitempty"` // sorted
}

// A Counter counts something of a queue.
type Counter string

const (
	CountAdded     Counter = "added"
	CountDuplicate Counter = "duplicate"
	CountClaimed   Counter = "claimed"
	CountDone      Counter = "done"
	CountFailed    Counter = "failed"
	CountCrashed   Counter = "crashed"
	CountReleased  Counter = "released"  // given back without an attempt spent
	CountUnhandled Counter = "unhandled" // of them: the worker had no handler for the type
	CountDead      Counter = "dead"
	CountCancelled Counter = "cancelled"
	CountExpired   Counter = "expired"
	CountTrimmed   Counter = "trimmed" // dead letters deleted by MaxDead or DeadRetention
)

// A Tick is one turn of a periodic job.
type Tick struct {
	Queue    string
	Name     string
	Schedule string    // as it was given; the newest of a name wins, and the first of those
	Defined  time.Time // how new it is; zero is older than all others
	At       time.Time
	Task     Task
}

// A Periodic is a periodic job as the store knows it.
type Periodic struct {
	Name     string    `json:"name"`
	Schedule string    `json:"schedule"`
	Defined  time.Time `json:"defined,omitzero"` // how new the schedule is
	Last     time.Time `json:"last"`             // the last tick, zero if there was none
}

var openers struct {
	sync.Mutex
	by map[string]func(ctx context.Context, url string) (Store, error)
}

// Register has [Open] use open for URLs of a scheme. The packages of stores do it
// when they are imported, each in its init. A scheme that is taken panics, and so does
// a nil open.
func Register(scheme string, open func(ctx context.Context, url string) (Store, error)) {
	openers.Lock()
	defer openers.Unlock()
	if open == nil {
		panic("taskqueue: Register of " + scheme + " with nil")
	}
	if openers.by[scheme] != nil {
		panic("taskqueue: Register of " + scheme + ", which is taken")
	}
	if openers.by == nil {
		openers.by = map[string]func(context.Context, string) (Store, error){}
	}
	openers.by[scheme] = open
}

// Open opens a store by its URL: "sqlite:tasks.db", "postgres://user@localhost/db", "redis://localhost:6379/0",
// "redis+sentinel://sentinel:26379/0?master_name=mymaster", "redis+cluster://node:6379", "mem:". It knows the stores whose packages the program imports. A URL that none of
// them knows is an [*InvalidError]; another error is that of the store. ctx is
// for the opening alone. The caller closes the store.
func Open(ctx context.Context, url string) (Store, error) {
	scheme, _, found := strings.Cut(url, ":")
	openers.Lock()
	open := openers.by[scheme]
	known := slices.Sorted(maps.Keys(openers.by))
	openers.Unlock()
	switch {
	case !found:
		return nil, invalid("store", "%q has no scheme: write it as sqlite:%s", url, url)
	case open == nil && len(known) == 0:
		return nil, invalid("store", "no store is known: import one, such as github.com/ambit-go/ambit/taskqueue/sqlstore")
	case open == nil:
		return nil, invalid("store", "%q is of none of the stores that this program has, which are %s: import the package of the one that is meant", scheme, strings.Join(known, ", "))
	}
	s, err := open(ctx, url)
	if err != nil {
		return nil, about(err, "store", scheme)
	}
	return s, nil
}

// An Auditor is a store that can check itself: whether each task is in exactly one
// state, whether it can be found there and nowhere else, and whether anything is left
// over. All stores of this module are. Nobody else should use the queue meanwhile.
type Auditor interface {
	// Audit returns what is wrong, a sentence each.
	Audit(ctx context.Context, queue string) (faults []string, err error)
}
