package service

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Main runs a program: it calls run, turns signals into a drain, ends what is left, and
// ends the process with an exit status.
//
//	func main() { service.Main(run, service.Grace(10*time.Second)) }
//
// # Details
//
// Main does not return, and is to be the last call in the function main. The ctx of run
// is a scope, see [async.Scope]. run is called on the goroutine that has called Main.
// opts are the defaults of every [Run] below.
//
// Signals: the first INT or TERM cancels ctx with a [*SignalError]: services drain. The
// second has [Hurry] done: what is left of them is cancelled. The third ends the process
// at once, whatever hangs, with 128 and its number: the services that still drain are
// named on the standard error, since when, and what runs in them, with stacks, and then
// the first failure, in a second at most. Signals are looked for from the call of Main to
// the end of the process. With [Debounce] signals that come together count as one. Where
// there are no such signals (js) none come.
//
// From the first signal or [Run] on a write to a standard output or error that nobody
// reads any more is an error: it does not end the process by SIGPIPE, with what there is
// to drain.
//
// When run and what it has started have ended, [async.Shutdown] ends detached tasks: it
// waits for what is left of [Grace] since the first signal, or for the whole if there was
// none, but not for the services that a Run has given up: they have had their time. Then
// the error, if there is one, is written to the standard error, once, after the name of
// the program. The exit status is
//
//	0	no error: all was done, or was drained after a signal
//	n	the first error with a method ExitStatus() int says so, as those of [WithStatus] do
//	128+n	signal number n has cut short what there was to do: the error
//		matches its SignalError or is that of the ctx, or a second one came
//	2	a panic, whose stack is written, or a *async.PanicError in an error
//	1	any other error, and Goexit
//
// In the tree of an error the first that has a status of its own decides. One that is not
// in 0 to 255 is 1.
//
// Main panics if run is nil and when it is called a second time.
func Main(run func(ctx context.Context) error, opts ...Option) {
	if run == nil {
		panic("service: Main with a nil function: pass what the program does")
	}
	if mainCalled.Swap(true) {
		panic("service: Main was called twice: it owns the signals and the end of the process")
	}
	p := newProgram(opts)
	signal.Notify(p.signals, os.Interrupt, syscall.SIGTERM) // to the end of the process: a late signal is one, too
	go p.follow()
	p.main(run)
}

// mainCalled: a process has one Main.
var mainCalled atomic.Bool

// A program is one call of Main.
type program struct {
	options
	signals  chan os.Signal
	ctx      context.Context // what run is called below
	cancel   context.CancelCauseFunc
	hurry    context.Context // done at the second signal
	hurryUp  context.CancelCauseFunc
	exit     func(status int)
	patience time.Duration // for the last words

	counted time.Time // when a signal has counted last; the zero time before the first; take's
	pipes   sync.Once // ownPipes was called

	mu      sync.Mutex
	came    []*SignalError
	sets    []*set    // that run
	givenUp []*set    // that have returned without their services
	remarks []error   // of services that were told to stop
	dropped int       // how many remarks there were beside
	stopped time.Time // when the program was told to stop, or a Run in it began to drain
	noted   []noted   // the first failure of each Run and of the whole, in the order in which they came
	// said is closed when it was written, or what holds it; nil: nobody has begun to.
	said chan struct{}
}

// programKey is the key under which a context shows the program it is part of.
type programKey struct{}

// programOf returns the program that ctx is part of, nil without Main.
func programOf(ctx context.Context) *program {
	p, _ := ctx.Value(programKey{}).(*program)
	return p
}

func newProgram(opts []Option) *program {
	p := &program{
		options:  defaults.with(opts),
		signals:  make(chan os.Signal, 8), // a person's fingers are slower
		exit:     os.Exit,
		patience: lastWords,
	}
	p.ctx, p.cancel = context.WithCancelCause(context.WithValue(context.Background(), programKey{}, p))
	p.hurry, p.hurryUp = context.WithCancelCause(context.Background())
	return p
}

// follow does what the signals say. The third is not held up by anything.
func (p *program) follow() {
	p.cancel(p.take())
	p.hurryUp(p.take())
	third := p.take()
	said := make(chan struct{})
	go func() {
		defer close(said)
		p.sayOverruns(third)
		p.sayFailure()
		p.sayRemarks()
	}()
	select {
	case <-said:
	case <-time.After(p.patience):
	}
	p.exit(third.ExitStatus())
}

// take waits for the next signal that counts.
func (p *program) take() *SignalError {
	sig := <-p.signals
	for time.Since(p.counted) < p.debounce {
		sig = <-p.signals
	}
	p.counted = time.Now()
	err := &SignalError{sig}
	p.stops()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.came = append(p.came, err)
	return err
}

// stops notes when the stop begins: from then on there is one time for all.
func (p *program) stops() {
	p.serves()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped.IsZero() {
		p.stopped = time.Now()
	}
}

// serves notes that there is something to drain.
func (p *program) serves() { p.pipes.Do(ownPipes) }

// main calls run and ends the process, whichever way run ends.
func (p *program) main(run func(ctx context.Context) error) {
	err := error(async.ErrGoexit)
	defer func() {
		if value := recover(); value != nil {
			err = &crash{value, debug.Stack()}
			p.say(err) // at once: it is worth more than what Shutdown has to add
		}
		p.end(err)
	}()
	err = p.outcome(async.Scope(p.ctx, run))
}

// outcome returns what the scope of run has said without the signal that has cancelled
// it, if there is anything else: that signal may well have had all it wanted.
func (p *program) outcome(err error) error {
	list, ok := err.(*async.ScopeError)
	switch {
	case !ok || list.Dropped > 0 || p.ctx.Err() == nil || !same(list.Cause, context.Cause(p.ctx)):
		return err
	case len(list.Errors) == 0:
		return list.Cause
	}
	return joined(list.Errors)
}
