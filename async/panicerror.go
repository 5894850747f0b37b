package async

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/async/internal/echo"
	"github.com/ambit-go/ambit/async/internal/tally"
)

// A PanicError carries a panic from the goroutine it happened on to the one
// that is told. A [Scope] panics with it when a task of it has panicked; a future
// returns it. A panic of a body is not wrapped in one: it goes on as it was.
//
// One panic is one PanicError: it is never copied, and passes through outer
// scopes as it is. The scope that raises it attaches what went wrong beside it:
// Error shows that, and [errors.Is] and [errors.As] reach it. They also reach
// Value, if that is an error.
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
	same := func(other error) bool { return tally.Same(bare(other), bare(err)) }
	switch {
	case slices.ContainsFunc(e.beside, same):
	case len(e.beside) < tally.Max:
		e.beside = append(e.beside, err)
	default:
		e.dropped++
	}
}

// withoutBeside returns what can be attached to p of an error that holds p: of
// another panic what it was and what went wrong beside it, of a list what does not
// hold p, and nil of p itself and of what only wraps it.
func withoutBeside(err error, p *PanicError) error {
	if !holds(err, p) {
		return err
	}
	switch e := err.(type) {
	case *StragglerError:
		left := *e
		left.Cause = errors.New(textMade(e.Cause, func() string { return briefly("", e.Cause) }))
		return &left
	case *ScopeError:
		if rest := eachWithoutBeside(e.Errors, p); len(rest) > 0 || e.Dropped > 0 {
			return &ScopeError{Scope: e.Scope, Errors: rest, Dropped: e.Dropped}
		}
	case *UnawaitedError:
		if err = withoutBeside(e.Err, p); err != nil {
			return &UnawaitedError{Task: e.Task, Err: err}
		}
	case *PanicError:
		if e == p {
			return nil
		}
		alone := fmt.Errorf("async: panic in %s: %s", e.Task, e.valueText())
		if cause := e.Unwrap(); cause != nil && !holds(cause, p) {
			alone = fmt.Errorf("async: panic in %s: %w", e.Task, cause)
		}
		beside, dropped := e.listed()
		if beside = eachWithoutBeside(beside, p); len(beside) == 0 && dropped == 0 {
			return alone
		}
		return &ScopeError{Scope: e.Task, Errors: append([]error{alone}, beside...), Dropped: dropped}
	}
	return nil
}

func eachWithoutBeside(errs []error, p *PanicError) (rest []error) {
	for _, err := range errs {
		if err = withoutBeside(err, p); err != nil {
			rest = append(rest, err)
		}
	}
	return rest
}

// holds reports whether err is p, or holds it: a panic is never attached to itself,
// or its text would have no end.
func holds(err error, p *PanicError) bool {
	return asked(err, func() bool { return leadsTo(err, p, 0) })
}

// leadsTo is holds for an error that stands so deep in another.
func leadsTo(err error, p *PanicError, depth int) (leads bool) {
	defer func() { _ = recover() }() // of a user's Unwrap
	if err == error(p) || depth > 100 {
		return depth <= 100
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
		return nilText(e)
	}
	text := fmt.Sprintf("async: panic in %s: %s\n\n%s", e.Task, e.valueText(), e.Stack)
	if errs, dropped := e.listed(); len(errs) > 0 || dropped > 0 {
		texts := []string{"beside it:"}
		for _, err := range errs {
			texts = append(texts, within(e.Task, err))
		}
		text = strings.TrimRight(text, "\n") + "\n\n" + list(texts, dropped)
	}
	return text
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
	return beside != nil && echo.Matches(beside, target)
}

// As looks for target in what went wrong beside the panic.
func (e *PanicError) As(target any) bool {
	beside := e.besideError()
	return beside != nil && errors.As(beside, target)
}
