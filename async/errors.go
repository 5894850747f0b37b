package async

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// Errors that tell how work ended. Test for them with [errors.Is].
var (
	// ErrScopeEnded is the cause of every context whose scope or task has
	// ended, and the result of what was started too late.
	ErrScopeEnded = errors.New("async: scope has ended")

	// ErrScopeDone is the cause with which a scope stops its daemons once
	// the body and the ordinary tasks have ended.
	ErrScopeDone = errors.New("async: scope is done")

	// ErrGoexit is the outcome of a task that called [runtime.Goexit], as
	// testing.T.FailNow does.
	ErrGoexit = errors.New("async: task called runtime.Goexit")

	// ErrAbandoned settles a promise that nobody resolved before its scope
	// ended.
	ErrAbandoned = errors.New("async: promise abandoned")

	// ErrAwaitCycle is returned by a wait that could never end because the
	// awaited task waits, directly or not, for the waiter. The text of the
	// returned error holds the path.
	ErrAwaitCycle = errors.New("async: await cycle")

	// ErrShutdown is the cause with which [Shutdown] stops what is left.
	ErrShutdown = errors.New("async: shutting down")
)

// lateStart returns the error of what was started in t after t has ended.
func lateStart(t *task) error { return fmt.Errorf("%w: %s", ErrScopeEnded, t.name()) }

// A TimeoutError says that a time limit of this package has passed: that of
// an Await, or the Timeout of a task or scope. It matches
// [context.DeadlineExceeded]. Whose limit it was is a matter of identity:
// compare the pointer with [context.Cause], not the type.
type TimeoutError struct {
	Task   string        // the name of the task or scope
	Limit  time.Duration // the limit that was set
	Waited time.Duration // how long the waiter has waited

	awaited bool // it is the limit of an Await, perhaps of somebody else's
}

// Error names the task, the limit and the time waited.
func (e *TimeoutError) Error() string {
	of := ""
	if e.awaited {
		of = " of an Await"
	}
	return fmt.Sprintf("async: %s: context deadline exceeded (limit %v%s, waited %v)", e.Task, e.Limit, of, e.Waited)
}

// Is reports that a TimeoutError is a [context.DeadlineExceeded].
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout returns true; it is what net.Error asks.
func (e *TimeoutError) Timeout() bool { return true }

// A PanicError carries a panic from the goroutine it happened on to the one
// that is told. A Scope panics with it; a future returns it.
type PanicError struct {
	Value any    // what panic was called with
	Stack []byte // the stack of the goroutine that panicked
	Task  string // the task, scope or hook that panicked

	ours     bool       // made by this package: a panic that was recovered
	observed atomicBool // the observers were told of it
	printed  atomicBool // it was printed, because it was not raised for long

	mu      mutex   // guards what follows
	beside  []error // what else went wrong in the scopes that raised it; at most 32
	dropped int     // how many more there were
}

// attach adds what went wrong beside the panic in a scope that raises it.
func (e *PanicError) attach(errs []error, dropped int) {
	for _, err := range errs {
		if err = withoutBeside(err, e); err != nil {
			e.attachOne(err)
		}
	}
	e.mu.Lock()
	e.dropped += dropped
	e.mu.Unlock()
}

func (e *PanicError) attachOne(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	same := func(other error) bool { return tally.Same(other, err) }
	switch {
	case slices.ContainsFunc(e.beside, same):
	case len(e.beside) < tally.Max:
		e.beside = append(e.beside, err)
	default:
		e.dropped++
	}
}

// withoutBeside returns what can be attached to p of an error that holds p: of
// another panic only what it was, of a list what does not hold p, and nil of p
// itself and of what only wraps it.
func withoutBeside(err error, p *PanicError) error {
	if !leadsTo(err, p, 0) {
		return err
	}
	switch e := err.(type) {
	case *StragglerError:
		left := *e
		left.Cause = errors.New(brief(e.Cause))
		return &left
	case *ScopeError:
		rest := &ScopeError{Scope: e.Scope, Dropped: e.Dropped}
		for _, err := range e.Errors {
			if err = withoutBeside(err, p); err != nil {
				rest.Errors = append(rest.Errors, err)
			}
		}
		if len(rest.Errors) > 0 || rest.Dropped > 0 {
			return rest
		}
	case *PanicError:
		if e == p {
			return nil
		}
		if cause := e.Unwrap(); cause != nil && !leadsTo(cause, p, 0) {
			return fmt.Errorf("async: panic in %s: %w", e.Task, cause)
		}
		return fmt.Errorf("async: panic in %s: %v", e.Task, e.Value)
	}
	return nil
}

// leadsTo reports whether err is p, or holds it: a panic is never attached to
// itself, or its text would have no end.
func leadsTo(err error, p *PanicError, depth int) (leads bool) {
	defer func() { _ = recover() }() // of a user's Unwrap
	if err == error(p) || depth > 100 {
		return true
	}
	var inner []error
	switch e := err.(type) {
	case nil:
	case *PanicError:
		inner, _ = e.listed()
		inner = append(inner, e.Unwrap())
	case interface{ Unwrap() error }:
		inner = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		inner = e.Unwrap()
	}
	return slices.ContainsFunc(inner, func(err error) bool { return leadsTo(err, p, depth+1) })
}

// listed returns what was attached so far, and how many errors found no place.
func (e *PanicError) listed() (beside []error, dropped int) {
	if e == nil {
		return nil, 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.beside), e.dropped
}

// besideError returns what was attached as one error, nil for nothing.
func (e *PanicError) besideError() error {
	errs, dropped := e.listed()
	switch {
	case len(errs) == 0 && dropped == 0:
		return nil
	case len(errs) == 1 && dropped == 0:
		return errs[0]
	default:
		return &ScopeError{Scope: "beside the panic in " + e.Task, Errors: errs, Dropped: dropped}
	}
}

// Error holds the value and the stack of the goroutine that panicked,
// because a crash prints nothing else.
func (e *PanicError) Error() string {
	if e == nil {
		return "async: a nil *PanicError"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "async: panic in %s: %s\n\n%s", e.Task, e.valueText(), e.Stack)
	if beside := e.besideError(); beside != nil {
		fmt.Fprintf(&b, "\nand beside it: %v", beside)
	}
	return b.String()
}

// Unwrap returns the value that was panicked with if it is an error.
func (e *PanicError) Unwrap() error {
	if e == nil || e.Value == error(e) {
		return nil
	}
	err, _ := e.Value.(error)
	return err
}

// valueText returns the text of the value, which users make.
func (e *PanicError) valueText() string {
	if p, ok := e.Value.(*PanicError); ok && p == e {
		return "itself"
	}
	return textOf(e.Value)
}

// Is looks for target in what went wrong beside the panic.
func (e *PanicError) Is(target error) bool {
	beside := e.besideError()
	return beside != nil && matches(beside, target)
}

// As looks for target in what went wrong beside the panic.
func (e *PanicError) As(target any) bool {
	beside := e.besideError()
	return beside != nil && errors.As(beside, target)
}

// maxListed is how many errors and stragglers are listed; of the rest only the
// number is kept.
const maxListed = tally.Max

// A ScopeError says how a scope or task has ended when that is more than one
// error, or when it was cancelled by something that is no failure of its own.
// [errors.Is] and [errors.As] reach the Cause and every one of the Errors.
type ScopeError struct {
	// Scope is the name of the scope or task.
	Scope string

	// Cause is why the scope was cancelled, unless that is one of Errors: the
	// cause of the context it was opened with, its own Timeout, or what Cancel,
	// Shutdown and the like were called with. Nil if it was not cancelled. An
	// error with a Cause matches the Err of the scope's context, too.
	Cause error

	// Errors are the failures in the order in which they came, the one that
	// decided first; those of hooks come last. There are at most 32, and an error
	// that several tasks returned is listed once. There are none if the scope was
	// only told to stop, and that kept something from being done.
	Errors []error

	// Dropped is how many more failures there were.
	Dropped int

	stop error // the Err of the scope's context, if there is a Cause
}

// Error tells the cause and the errors, one a line when there are several.
func (e *ScopeError) Error() string {
	var b strings.Builder
	prefix := "async: " + e.Scope + ": "
	b.WriteString(prefix)
	between := ""
	if e.Cause != nil {
		b.WriteString(strings.TrimPrefix(brief(e.Cause), prefix))
		between = "\n\t"
	}
	for _, err := range e.Errors {
		b.WriteString(between + strings.TrimPrefix(err.Error(), prefix))
		between = "\n\t"
	}
	if e.Dropped > 0 {
		fmt.Fprintf(&b, "\n\tand %d more", e.Dropped)
	}
	return b.String()
}

// Unwrap returns the cause, if there is one, and then the listed errors.
func (e *ScopeError) Unwrap() []error {
	if e.Cause == nil {
		return e.Errors
	}
	return append([]error{e.Cause}, e.Errors...)
}

// Is matches the Err of the scope's context, [context.Canceled] or
// [context.DeadlineExceeded], if there is a Cause.
func (e *ScopeError) Is(target error) bool {
	return e.Cause != nil && e.stop != nil && target == e.stop
}

// stopped returns an error that matches both err and cause.
func stopped(err, cause error) error { return (&stopError{err, cause}).told() }

// A Straggler is a task that still runs when somebody asks who is left: it was
// told to stop and has not gone, or nobody has told it.
type Straggler struct {
	Task  string
	State State
	Stack string // of its goroutine, "" if that was not found or has not run yet
}

// A StragglerError names who is left of a scope: tasks that were waited for and
// still run. None of them is lost sight of. Until they have ended the scope
// waits for them or, if it has returned without them ([DetachAfter]), the root
// has them on record.
type StragglerError struct {
	Scope string
	Left  []Straggler // at most 32
	More  int         // how many more there are
	Cause error       // why they were told to stop; nil: nobody has told them
}

// Error names the stragglers and shows their stacks.
func (e *StragglerError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "async: %s: %d still running", e.Scope, len(e.Left)+e.More)
	if e.Cause == nil {
		b.WriteString(", not told to stop")
	} else {
		b.WriteString(" after being told to stop: " + brief(e.Cause))
	}
	for _, s := range e.Left {
		fmt.Fprintf(&b, "\n\t%s (%v)", s.Task, s.State)
		if s.Stack != "" {
			b.WriteString("\n\t\t" + strings.ReplaceAll(strings.TrimSpace(s.Stack), "\n", "\n\t\t"))
		}
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\n\tand %d more", e.More)
	}
	return b.String()
}

// brief is the text of err without the stack of a panic.
func brief(err error) string {
	if p := (*PanicError)(nil); errors.As(err, &p) {
		return fmt.Sprintf("panic in %s: %s", p.Task, p.valueText())
	}
	return fmt.Sprint(err)
}

// Unwrap returns why the stragglers were told to stop, nil if nobody has.
func (e *StragglerError) Unwrap() error { return e.Cause }
