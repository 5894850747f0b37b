// Package store is what stores of package taskqueue are asked for, and what they answer. Who enqueues
// and works needs none of it: it is for those who write a [taskqueue.Store], as sqlstore and redisstore are.
// Requests are checked by the functions of package taskqueue whose names begin with Check, and
// package taskqueuetest tests whether a store keeps the rules.
//
// [taskqueue.Store]: https://pkg.go.dev/github.com/ambit-go/ambit/taskqueue#Store
package store

import "time"

// MaxDelay is the longest wait of an outcome: that of package taskqueue.
const MaxDelay = 100 * 365 * 24 * time.Hour

// A ClaimRequest asks for due tasks of one queue.
type ClaimRequest struct {
	Queue  string
	Worker string // a name that no other worker should have
	// Nonce is a different one for each claim of workers of this name, but for one that is
	// repeated. Among nonces that end with a slash and a number, and begin alike, one whose number
	// is less than that of the worker's last claim is of a claim that was given up and comes
	// late: it gets nothing.
	Nonce string
	Max   int           // how many at most; bounded by MaxBatch
	Lease time.Duration // counted from now by the clock of the store
	Weigh uint64        // not 0: the classes of priority are taken by weight, this is the seed. 0: strictly
}

// A Ref names one run of a task.
type Ref struct {
	ID    string
	Token int64
}

// An ExtendRequest asks for more time for runs of one queue.
type ExtendRequest struct {
	Queue  string
	Worker string
	Refs   []Ref
	Lease  time.Duration
	// Progress, by ID, is noted with the task.
	Progress map[string][]byte
}

// An ExtendResult is what became of one lease.
type ExtendResult uint8

const (
	Extended        ExtendResult = iota + 1
	CancelRequested              // extended, and somebody wants it to be cancelled
	Lost                         // somebody else has it, or nobody
)

// An OutcomeKind is how a run has ended.
type OutcomeKind uint8

const (
	Succeeded OutcomeKind = iota + 1
	Failed                // counts as a failure; After is the wait before the next run
	Buried                // a dead letter at once
	Released              // given back, no attempt spent; After is the wait
	Snoozed               // as Released, but asked for by the handler
	Stopped               // ended because it was asked to: cancelled if that was Cancel
	Unhandled             // as Released: the worker has no handler for its type
)

// An Outcome says how one run has ended.
type Outcome struct {
	Ref
	Kind   OutcomeKind
	After  time.Duration
	Error  string
	Result []byte
}

// Wait returns After as stores take it: not negative, and at most MaxDelay.
func (o *Outcome) Wait() time.Duration { return min(max(o.After, 0), MaxDelay) }

// A SettleResult is what became of one outcome.
type SettleResult uint8

const (
	Settled SettleResult = iota + 1 // now or before
	Stale                           // somebody else has it, or had it since
	Gone                            // nothing is known of the task any more
	// Overruled: it is settled, now or before, and the task is cancelled whatever the outcome
	// would have made of it. Cancel had asked for that, and the run has not ended well.
	Overruled
)

// An Act is an act of administration on one task.
type Act uint8

const (
	// ActCancel ends a task that waits, and asks the worker of one that runs to stop it.
	ActCancel Act = iota + 1
	// ActPromote makes a task due now, and has it wait for no other one.
	ActPromote
	// ActRetry makes a dead or cancelled task due now, with its counts set to 0. If
	// another task holds its unique key by now nothing is changed.
	ActRetry
	// ActDelete forgets a task that does not run.
	ActDelete
)
