// Package remote makes a store of one process usable by others on the same machine,
// through a socket in the file system.
package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// maxWait bounds a call of Wait: whoever waits asks again.
const maxWait = time.Second

// version is that of what goes over the socket.
const version = 1

// A Call is what goes over the socket: what to do, and all that it needs. Only what
// belongs to Do is set.
type Call struct {
	Version  int
	Do       string
	Queue    string
	ID       string
	Tasks    []taskqueue.NewTask
	Claim    taskqueue.ClaimRequest
	Extend   taskqueue.ExtendRequest
	Outcomes []taskqueue.Outcome
	Seen     uint64
	Wait     time.Duration
	List     taskqueue.ListRequest
	Act      taskqueue.Act
	State    taskqueue.State
	Cursor   string
	Settings taskqueue.Settings
	Before   taskqueue.Settings
	Tick     taskqueue.Tick
}

// An Answer is what comes back.
type Answer struct {
	Results  []taskqueue.Result
	Claimed  taskqueue.Claimed
	Extended []taskqueue.ExtendResult
	Settled  []taskqueue.SettleResult
	Info     taskqueue.Info
	Page     taskqueue.Page
	Queues   []string
	Stats    taskqueue.Stats
	Periodic []taskqueue.Periodic
	Faults   []string
	Done     bool
	N        int
	Cursor   string

	Kind      string // of the error: one of kinds, "invalid", "duplicate", or "" for none
	What, Why string // of an InvalidError; of a DuplicateError its key and its holder
	Text      string // of another
}

// kinds are the errors that keep what they are.
var kinds = map[string]error{
	"not found": taskqueue.ErrNotFound,
	"closed":    ErrGone, // it is theirs that is closed: ours finds another
}

// setError notes err.
func (a *Answer) setError(err error) {
	var wrong *taskqueue.InvalidError
	var held *taskqueue.DuplicateError
	switch {
	case err == nil:
		return
	case errors.As(err, &wrong):
		a.Kind, a.What, a.Why = "invalid", wrong.What, wrong.Why
		return
	case errors.As(err, &held):
		a.Kind, a.What, a.Why = "duplicate", held.UniqueKey, held.Holder
		return
	}
	a.Kind, a.Text = "other", err.Error()
	for kind, e := range kinds {
		if errors.Is(err, e) {
			a.Kind = kind
		}
	}
	if errors.Is(err, taskqueue.ErrClosed) {
		a.Kind = "closed"
	}
}

func (a *Answer) error() error {
	switch a.Kind {
	case "":
		return nil
	case "invalid":
		return &taskqueue.InvalidError{What: a.What, Why: a.Why}
	case "duplicate":
		return &taskqueue.DuplicateError{UniqueKey: a.What, Holder: a.Why}
	case "other":
		return errors.New(a.Text)
	}
	return &failure{a.Text, kinds[a.Kind]}
}

// A failure is an error of the other process that keeps its text, and what it is.
type failure struct {
	text string
	is   error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.is }

// serve does what c says on s.
func serve(ctx context.Context, s taskqueue.Store, c *Call, a *Answer) {
	if c.Version != version {
		a.setError(fmt.Errorf("taskqueue: the process that has the file speaks version %d at its socket, and this one %d: use the same program", version, c.Version))
		return
	}
	var err error
	switch c.Do {
	case "enqueue":
		a.Results, err = s.Enqueue(ctx, c.Queue, c.Tasks)
	case "claim":
		a.Claimed, err = s.Claim(ctx, c.Claim)
	case "extend":
		a.Extended, err = s.Extend(ctx, c.Extend)
	case "settle":
		a.Settled, err = s.Settle(ctx, c.Queue, c.Outcomes)
	case "wait":
		err = s.Wait(ctx, c.Queue, c.Seen, clock.Now().Add(min(c.Wait, maxWait)))
	case "get":
		a.Info, err = s.Get(ctx, c.Queue, c.ID)
	case "list":
		a.Page, err = s.List(ctx, c.Queue, c.List)
	case "queues":
		a.Queues, err = s.Queues(ctx)
	case "stats":
		a.Stats, err = s.Stats(ctx, c.Queue)
	case "act":
		a.Done, err = s.Act(ctx, c.Queue, c.ID, c.Act)
	case "purge":
		a.N, a.Cursor, err = s.Purge(ctx, c.Queue, c.State, c.Cursor)
	case "configure":
		// The function is the other process's: it sends what it was given and what it
		// has made of that.
		a.Done = true
		err = s.Configure(ctx, c.Queue, func(set *taskqueue.Settings) {
			if a.Done = *set == c.Before; a.Done {
				*set = c.Settings
			}
		})
	case "tick":
		a.Done, err = s.Tick(ctx, c.Tick)
	case "unschedule":
		a.Done, err = s.Unschedule(ctx, c.Queue, c.ID)
	case "periodic":
		a.Periodic, err = s.Periodic(ctx, c.Queue)
	case "audit":
		a.Faults, err = audited(ctx, s, c.Queue)
	default:
		err = errors.New("taskqueue: the process that has the file does not know " + c.Do + ": use the same version")
	}
	a.setError(err)
}

func audited(ctx context.Context, s taskqueue.Store, queue string) ([]string, error) {
	a, ok := s.(taskqueue.Auditor)
	if !ok {
		return nil, errors.New("taskqueue: this store cannot check itself")
	}
	return a.Audit(ctx, queue)
}
