package service

import (
	"context"
	"os"
	"syscall"
)

// A SignalError is the cause of what a signal to [Main] has stopped.
type SignalError struct{ Signal os.Signal }

// Error names the signal.
func (e *SignalError) Error() string { return "stopped by signal: " + e.Signal.String() }

// ExitStatus returns 128 and the number of the signal, as shells do: 130 for an
// interrupt, 143 for TERM.
func (e *SignalError) ExitStatus() int {
	if sig, ok := e.Signal.(syscall.Signal); ok {
		return 128 + int(sig)
	}
	return statusFailed
}

// Hurry returns a context with the values of ctx that is done at the second signal to
// [Main], and at nothing else.
//
//	ctx, cancel := context.WithTimeout(service.Hurry(ctx), 10*time.Second)
//
// # Details
//
// The cause is a [*SignalError]. The context is for work that is to be done in peace
// unless somebody is in a hurry, such as the grace that a process is given. Its scope is
// that of ctx. Without Main it is never done.
func Hurry(ctx context.Context) context.Context {
	values := context.WithoutCancel(ctx)
	p := programOf(ctx)
	if p == nil {
		return values
	}
	return hurried{Context: p.hurry, values: values}
}

// hurried is a context with the values of another. It asks its own context first, so
// package context finds there that this is a standard one.
type hurried struct {
	context.Context
	values context.Context
}

func (h hurried) Value(key any) any {
	if v := h.Context.Value(key); v != nil {
		return v
	}
	return h.values.Value(key)
}
