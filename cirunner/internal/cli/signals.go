package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/ambit-go/ambit/async"
)

// A SignalError is the cause of work that a signal has stopped.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return "stopped by signal: " + e.Signal.String() }

// ExitStatus returns 128 and the number of the signal: 130 for an interrupt.
func (e *SignalError) ExitStatus() int {
	if sig, ok := e.Signal.(syscall.Signal); ok {
		return 128 + int(sig)
	}
	return 128
}

// StopStatus returns the exit status of work that was stopped for a cause, and
// whether it has one: that of the signal, StatusDeadline for an
// *async.TimeoutError, StatusPipe if nobody reads the output any more. Give it
// the cause of the whole work: an error may hold the limit of a part of it.
func StopStatus(cause error) (status int, ok bool) {
	var sig *SignalError
	switch {
	case errors.As(cause, new(*async.WatchdogError)): // whose check may have had a limit
	case errors.As(cause, &sig):
		return sig.ExitStatus(), true
	case errors.As(cause, new(*async.TimeoutError)):
		return StatusDeadline, true
	case errors.Is(cause, syscall.EPIPE):
		return StatusPipe, true
	}
	return StatusFailed, false
}

// SignalAlone returns the SignalError in the tree of err, without the rest: for
// programs where whatever else failed did so because of the signal. It returns
// err if there is none.
func SignalAlone(err error) error {
	var sig *SignalError
	if errors.As(err, &sig) {
		return sig
	}
	return err
}

// FailOnSignal fails the scope of ctx with a SignalError at the first SIGINT or
// SIGTERM: the cause that everything in it is stopped with. A second signal has
// its usual effect, and ends the process at once.
func FailOnSignal(ctx context.Context) {
	OnSignal(ctx, func(sig os.Signal) error { return &SignalError{sig} }, os.Interrupt, syscall.SIGTERM)
}

// OnSignal has f called with each of the signals that arrives, one after the
// other, until f returns an error, which fails the scope of ctx, or until that
// scope is cancelled or has no other work left. From then on the signals have
// their usual effect. It does not keep the scope from ending, and a signal that
// arrives when it has returned is not missed.
func OnSignal(ctx context.Context, f func(os.Signal) error, signals ...os.Signal) {
	arrived := make(chan os.Signal, 8) // a person's fingers are slower
	signal.Notify(arrived, signals...)
	async.Go(ctx, func(ctx context.Context) error {
		defer signal.Stop(arrived)
		for {
			select {
			case sig := <-arrived:
				if err := f(sig); err != nil {
					return err
				}
			case <-ctx.Done():
				return nil
			}
		}
	}, async.Daemon(), async.Name("signals"))
}
