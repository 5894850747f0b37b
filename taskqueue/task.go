package taskqueue

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue/store"
)

// Limits of what a store accepts. They hold for every store.
const (
	// Priorities is the number of classes. The greater class is the more urgent,
	// as in package jobqueue; 0 is the default.
	Priorities = 8
	// MaxPayload is the largest payload, in bytes, unless a queue says otherwise.
	MaxPayload = 1 << 20
	// MaxBatch is how many tasks one step of a store touches at most.
	MaxBatch = 1000
	// MaxBatchBytes bounds the payloads of one step.
	MaxBatchBytes = 4 << 20
	// MaxName is the longest id, unique key, type or name of a queue, in bytes.
	MaxName = 256
	// MaxHeaders bounds the names and values of the headers of one task, in bytes.
	MaxHeaders = 64 << 10
	// MaxResult is the longest result of a task, in bytes.
	MaxResult = 1 << 20
	// MaxProgress is the longest note of how far a task is, in bytes.
	MaxProgress = 64 << 10
	// MaxDelay is the longest wait: that of a Delay, of a backoff, of [RetryAfter] and
	// of [Snooze]. MaxRetention is the longest Retention.
	MaxDelay     = store.MaxDelay // 100 years
	MaxRetention = 8 * 365 * 24 * time.Hour
)

// A Task is work that is to be done at its time, at least once.
//
// Type is the only field that must be set: it says which handler runs the task.
type Task struct {
	// ID names the task in its queue. Empty: Enqueue makes one that sorts by time.
	// A second task of the same ID is not added, as long as the first is known. So
	// an Enqueue whose answer was lost can be repeated.
	ID string `json:"id"`
	// Type says which handler runs it.
	Type string `json:"type"`
	// Queue is where it waits. Empty: the queue that Enqueue was called on.
	Queue string `json:"queue"`
	// UniqueKey, if it is set, is held by the task until it has ended (or until it
	// starts, see Until). No other task with the same key is added meanwhile.
	UniqueKey string      `json:"unique_key,omitempty"`
	Until     UniqueUntil `json:"until,omitempty"`
	// LimitKey names what the task is counted with, a tenant for instance, where the queue has a limit
	// for it: see Limit. A queue without such limits makes nothing of it.
	LimitKey string `json:"limit_key,omitempty"`
	// Payload is given to the handler as it is.
	Payload []byte            `json:"payload,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`

	// Delay is how long after now, by the clock of the store, it is due. RunAt is
	// taken as said. At most one of them is set; none: due at once.
	Delay time.Duration `json:"delay,omitempty"`
	RunAt time.Time     `json:"run_at,omitzero"`
	// ExpiresAt: a task that has not been started by then becomes a dead letter. Zero: never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// After are the IDs of tasks of the same queue, ended or not, or of tasks before this one in the
	// same call: it waits until they are done, and then for its time, if that has not come. At most
	// MaxAfter. OnFailed says what becomes of it if one of them fails for good. Give a task that
	// others are added after, later, a Retention: one that is forgotten is not known. Give one to the
	// task itself, too, if it may be skipped and is to be retried: see OnFailedSkip.
	After    []string `json:"after,omitempty"`
	OnFailed OnFailed `json:"on_failed,omitempty"`
	// Priority is its class, up to Priorities-1. The greater is the more urgent.
	Priority uint8 `json:"priority,omitempty"`
	// MaxFailures is how many times the handler may fail: the last of them makes a
	// dead letter. 0: DefaultMaxFailures.
	MaxFailures int `json:"max_failures,omitempty"`
	// MaxCrashes is how many leases of it may run out, which happens when its worker
	// dies: the last of them makes a dead letter. 0: DefaultMaxCrashes.
	MaxCrashes int `json:"max_crashes,omitempty"`
	// Timeout bounds each run. 0: none.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Retention is how long the task and its result are kept after it was done or
	// cancelled. At least the id is kept for MinRetention.
	Retention time.Duration `json:"retention,omitempty"`
}

// Defaults of a task.
const (
	DefaultMaxFailures = 25
	DefaultMaxCrashes  = 3
	// MinRetention is how long the id of an ended task is known at least, unless it is a
	// dead letter that MaxDead or DeadRetention has trimmed: so long an answer that was
	// lost can be asked for again.
	MinRetention = time.Minute
)

// A UniqueUntil says how long a task holds its UniqueKey.
type UniqueUntil uint8

const (
	End   UniqueUntil = iota // until it is done, dead or cancelled
	Start                    // until it is claimed for the first time
)

// A State is where a task is in its life. It is in exactly one.
type State uint8

const (
	StateScheduled State = iota + 1 // its time has not come
	StateReady                      // its time has come
	StateRunning                    // a worker has it under a lease
	StateRetrying                   // it has failed, and waits for its next run
	StateDone                       // its handler has returned nil
	StateDead                       // a dead letter: it is not run again unless Retry says so
	StateCancelled                  // Cancel has ended it, or the end of a task that it was to run after
	StateWaiting                    // tasks that it is to run after are not done
)

var stateNames = [...]string{"", "scheduled", "ready", "running", "retrying", "done", "dead", "cancelled", "waiting"}

// String returns the name of the state in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) && s > 0 {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// ParseState returns the state of that name.
func ParseState(name string) (State, error) {
	for s, n := range stateNames {
		if n == name && s > 0 {
			return State(s), nil
		}
	}
	return 0, invalid("state", "there is no %q: use one of %s", name, strings.Join(stateNames[1:], ", "))
}

// MarshalText and UnmarshalText write a state by its name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (s *State) UnmarshalText(b []byte) (err error) {
	*s, err = ParseState(string(b))
	return err
}

// Ended reports whether nothing happens to a task in this state any more by itself.
func (s State) Ended() bool { return s >= StateDone && s <= StateCancelled }

// An Info is all that a store knows of a task.
type Info struct {
	Task
	State    State `json:"state"`
	Attempt  int   `json:"attempt"`  // how many times it was claimed, without those that were given back
	Failures int   `json:"failures"` // how many times its handler has failed
	Crashes  int   `json:"crashes"`  // how many leases of it have run out
	Releases int   `json:"releases"` // how many times in a row it was given back
	Token    int64 `json:"token"`    // of the last claim; see Claim

	EnqueuedAt time.Time `json:"enqueued_at"`
	DueAt      time.Time `json:"due_at"`              // when it is or was to run next
	StartedAt  time.Time `json:"started_at,omitzero"` // of the last run
	EndedAt    time.Time `json:"ended_at,omitzero"`
	LeaseEnd   time.Time `json:"lease_end,omitzero"` // while it runs

	Worker          string `json:"worker,omitempty"` // that has it or had it last
	CancelRequested bool   `json:"cancel_requested,omitempty"`
	Limited         bool   `json:"limited,omitempty"` // it is ready, and a limit of its LimitKey or type keeps it
	LastError       string `json:"last_error,omitempty"`
	Result          []byte `json:"result,omitempty"`
	Progress        []byte `json:"progress,omitempty"`
}

// MaxAfter is how many tasks one task waits for at most. Those of one step wait for MaxBatch
// in all.
const MaxAfter = 100

// An OnFailed says what is to become of a task when one that it waits for ends as a dead letter
// or cancelled, or is deleted before it has ended.
type OnFailed string

// The zero value is OnFailedSkip.
const (
	// OnFailedSkip has the task cancelled, and with it those that wait for it. Its LastError names
	// the other one. It is forgotten after its Retention, a minute if that is less, and cannot be
	// retried then; a Retry of the other one does not bring it back.
	OnFailedSkip OnFailed = "skip"
	// OnFailedRun has the task go on as if the other one were done.
	OnFailedRun OnFailed = "run"
	// OnFailedWait has the task wait until a task of that ID is done: the other one may be
	// retried, or deleted and added again.
	OnFailedWait OnFailed = "wait"
)

// checkAfter says what is wrong with the tasks that t is to run after.
func checkAfter(t *Task) error {
	switch {
	case len(t.After) > MaxAfter:
		return invalid("After", "it names %d tasks, at most %d are allowed: put a task in between that waits for some of them", len(t.After), MaxAfter)
	case t.OnFailed != "" && !slices.Contains([]OnFailed{OnFailedSkip, OnFailedRun, OnFailedWait}, t.OnFailed):
		return invalid("OnFailed", "there is no %q: use one of skip, run, wait", string(t.OnFailed))
	case t.OnFailed != "" && len(t.After) == 0:
		return invalid("OnFailed", "it is set and After is not: set After, or leave it out")
	}
	for i, id := range t.After {
		switch err := CheckName("After", id); {
		case err != nil:
			return err
		case id == t.ID:
			return invalid("After", "it names the task itself: leave that out")
		case slices.Contains(t.After[:i], id):
			return invalid("After", "it names task %q twice: leave one out", id)
		}
	}
	return nil
}

// afterSize is what the names of the tasks that t waits for count for MaxBatchBytes.
func afterSize(t *Task) (n int) {
	for _, id := range t.After {
		n += len(id)
	}
	return n
}
