package async

import (
	"context"
	"reflect"
	"time"

	"github.com/ambit-go/ambit/async/internal/echo"
	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file is about doing something again and again: polls and repetitions.
// Each runs on the goroutine of one task.

// Again makes an error that does not end the poll whose probe returns it: not yet.
//
//	return "", false, async.Again(err) // in a probe
//
// # Details
//
// The poll remembers err, which may be nil.
func Again(err error) error { return &againError{err: err} }

// AgainAfter is [Again] for when the other side has said when: the next probe, or the
// next call of [Retry], is made d later, whatever the interval.
//
//	return "", false, async.AgainAfter(retryAfter(response), err) // in a probe
func AgainAfter(d time.Duration, err error) error { return &againError{err, d, true} }

// againError is found by errors.As, so a probe may wrap it.
type againError struct {
	err   error
	wait  time.Duration
	timed bool // wait counts
}

func (e *againError) Error() string {
	if e.err == nil {
		return "async: not yet"
	}
	return e.err.Error()
}

func (e *againError) Unwrap() error { return e.err }

type pollOption func(*pollOptions)

func (o pollOption) applyPoll(p *pollOptions) { o(p) }

// Attempts ends a poll after n probes, and [Retry] after n calls.
//
//	row, err := async.Retry(ctx, async.Every(time.Second), load, async.Attempts(5))
//
// # Details
//
// Without the option there is no limit. n < 1 panics.
func Attempts(n int) PollOption {
	if n < 1 {
		panic("async: Attempts(n): n must be at least 1; for no limit leave the option out")
	}
	return pollOption(func(p *pollOptions) { p.attempts = n })
}

// Tolerate lets n errors in a row pass; the next one counts.
//
//	pod := async.Poll(ctx, async.Every(time.Second), phase, async.Tolerate(3))
//
// # Details
//
// Any success between starts the count again, and so does an [Again]. n < 0 panics.
func Tolerate(n int) WatchOption {
	if n < 0 {
		panic("async: Tolerate(n): n must not be negative")
	}
	return tolerate(n)
}

type tolerate int

func (n tolerate) applyPoll(p *pollOptions)   { p.tolerate = int(n) }
func (n tolerate) applyWatch(w *watchOptions) { w.tolerate = int(n) }

// AfterInterval has the first probe, or the first call of [Retry], wait for an
// interval, too.
//
//	pod := async.Poll(ctx, async.Every(time.Second), phase, async.AfterInterval())
func AfterInterval() PollOption { return pollOption(func(p *pollOptions) { p.late = true }) }

// FixedRate measures intervals from the start of one probe to the start of the next,
// not from its end.
//
//	ticks := async.Repeat(ctx, async.Every(time.Second), tick, async.FixedRate())
//
// # Details
//
// Probes stay on the grid: when one has taken too long, the ticks that it has missed
// are skipped.
func FixedRate() PollOption { return pollOption(func(p *pollOptions) { p.fixed = true }) }

// Poll calls probe again and again, the first time at once, until it says that it is
// done; the future settles with its value.
//
//	pod := async.Poll(ctx, async.Every(time.Second), phase)
//	last, err := pod.Await(ctx, time.Minute)
//
// # Details
//
// Probes never overlap, and none is started once the context is done. The wait between
// two probes is what interval returns; a task lends its slot of a [Limit] meanwhile.
//
// An error of probe ends the poll, unless it is an [Again] or is tolerated; see
// [Tolerate]. With an error done is not looked at, but for Again(nil), over which it
// wins. A poll that ends without an answer fails with a [*PollError], which carries
// the last value and the last error. An Await whose limit passes returns only its
// [*TimeoutError]; with [Timeout] or [Grace] it returns both.
//
// Poll does not block, and belongs to the scope of ctx as a task of [Execute] does;
// when its context is cancelled it stops between two probes with the cause. A nil
// probe, interval or ctx panics.
//
// The functions that wait in Kubernetes' apimachinery are the model.
func Poll[T any](
	ctx context.Context, interval Interval,
	probe func(ctx context.Context) (value T, done bool, err error), opts ...PollOption,
) *Future[T] {
	if probe == nil {
		panic("async: Poll with a nil probe: pass what is to be called")
	}
	p := newPoll[T]("Poll", interval, opts)
	p.probe = probe
	return p.start(ctx, probe)
}

// Repeat calls f again and again, as [Poll] does, until it returns an error or the
// future is cancelled.
//
//	_, err := async.Repeat(ctx, async.Every(time.Minute), sweep).Join(ctx)
//
// # Details
//
// Repeat that has made its [Attempts] has succeeded. One that has ended otherwise
// fails with a [*PollError]. Repeat does not block, and a nil f, interval or ctx
// panics.
func Repeat(
	ctx context.Context, interval Interval, f func(ctx context.Context) error, opts ...PollOption,
) *Future[struct{}] {
	if f == nil {
		panic("async: Repeat with a nil function: pass what is to be called")
	}
	p := newPoll[struct{}]("Repeat", interval, opts)
	p.endless = true
	p.probe = func(ctx context.Context) (struct{}, bool, error) { return struct{}{}, false, f(ctx) }
	return p.start(ctx, f)
}

// A poll is one call of Poll or Repeat. Only its task's goroutine uses it.
type poll[T any] struct {
	o        pollOptions
	interval Interval
	probe    func(context.Context) (T, bool, error)
	endless  bool // the attempts are what was asked for

	seen   PollError[T]
	failed int           // consecutive errors
	due    time.Duration // on our clock: when the last probe was, or should have been, started
}

func newPoll[T any](what string, interval Interval, opts []PollOption) *poll[T] {
	mustHaveInterval(what, interval)
	p := &poll[T]{interval: interval, o: collectPoll(opts)}
	if p.o.restart {
		panic("async: a poll with Restart: it calls its probe again and again anyway; see Tolerate and Again")
	}
	return p
}

func collectPoll(opts []PollOption) (all pollOptions) {
	for _, o := range opts {
		mustNotBeNil(o)
		o.applyPoll(&all)
	}
	return all
}

// start starts the task of the poll, which goes by the name of what.
func (p *poll[T]) start(ctx context.Context, what any) *Future[T] {
	n := &named[T]{what: what}
	n.init(tree.KindFuture, p.run)
	return n.startIn(ctx, p.o.task)
}

// run is the handler of the poll's task.
func (p *poll[T]) run(ctx context.Context) (value T, err error) {
	p.due = tree.Clock()
	if p.o.late {
		_ = Sleep(ctx, p.wait(nil))
	}
	for {
		if stop := tree.StopOf(ctx); stop != nil {
			return value, p.noAnswer(ctx, stop.AsError())
		}
		v, done, err := p.probe(ctx)
		p.seen.Attempts++
		again := p.remember(v, err)
		switch {
		case done && (err == nil || again != nil && again.err == nil): // Again(nil) has nothing to say against it
			return v, nil
		case err != nil && again == nil && p.failed > p.o.tolerate:
			return value, p.noAnswer(ctx, stoppedFor(ctx, err))
		case p.seen.Attempts == p.o.attempts && p.endless:
			return value, nil
		case p.seen.Attempts == p.o.attempts:
			return value, p.noAnswer(ctx, errAttempts)
		}
		_ = Sleep(ctx, p.wait(again))
	}
}

// remember remembers what a probe returned. It returns the Again of err, nil if it
// is none.
func (p *poll[T]) remember(v T, err error) (again *againError) {
	switch {
	case err == nil:
		p.seen.Value, p.failed = v, 0
	case isAgain(err, &again):
		p.failed = 0
		if again.err != nil {
			p.seen.Err = err
		}
		if value := reflect.ValueOf(v); value.IsValid() && !value.IsZero() {
			p.seen.Value = v // with an error, nothing is no news
		}
	default:
		p.seen.Err = err
		p.failed++
	}
	return again
}

// isAgain reports whether err is an Again, or wraps one, and sets again to that.
func isAgain(err error, again **againError) (is bool) {
	*again, is = echo.As[*againError](err)
	return is
}

// stoppedFor returns why ctx is done if that is all that err, of a probe, says; else nil.
func stoppedFor(ctx context.Context, err error) error {
	t, _ := tree.Nearest(ctx)
	if stop := tree.StoppedByNow(t); stop != nil && tree.IsEcho(err, stop) {
		return stop.AsError()
	}
	return nil
}

// noAnswer returns the outcome of a poll that has ended without an answer, for
// why if that is not nil.
func (p *poll[T]) noAnswer(ctx context.Context, why error) error {
	t, _ := tree.Nearest(ctx)
	seen := p.seen // apart from the poll, whose probe may have captured much
	seen.task, seen.why = t.Name(), why
	return &seen
}

// wait returns how long to sleep before the next probe.
func (p *poll[T]) wait(again *againError) time.Duration {
	d := max(p.interval(p.seen.Attempts), minInterval)
	now := tree.Clock()
	earliest := now
	if again != nil && again.timed {
		earliest = later(now, max(again.wait, minInterval))
	}
	switch {
	case p.o.fixed:
		p.due = nextTick(later(p.due, d), d, earliest)
		return between(now, p.due)
	case earliest > now:
		return between(now, earliest)
	default:
		return d
	}
}
