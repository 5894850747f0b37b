package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

// A waiter waits for one pod.
type waiter struct {
	client   *http.Client
	phase    string        // to wait for
	interval time.Duration // between requests, if the server does not say
	timeout  time.Duration // of all
	changed  func(status)  // is told of each change
	tell     func(format string, args ...any)

	server time.Duration // the interval that the server wants; 0: any
	last   status        // the last that was seen
}

// wait asks for the pod at url until it is in the phase. It returns nil, or a
// waitError: when the timeout has passed or ctx has ended, at once in the middle
// of whatever it waits for, or when an answer is final.
func (w *waiter) wait(ctx context.Context, url string) error {
	w.server, w.last = 0, status{}
	poll := async.Poll(ctx, w.pause, func(ctx context.Context) (status, bool, error) {
		return w.probe(ctx, url)
	}, async.Name(url), async.Timeout(w.timeout))
	_, err := poll.Await(context.WithoutCancel(ctx), 0) // ctx ends the poll, and that the wait
	if err == nil {
		return nil
	}
	return &waitError{want: w.phase, limit: w.timeout, last: w.last, err: err}
}

// pause is the interval between requests: never less than the server wants, and
// not the same for all who wait if it does not say.
func (w *waiter) pause(attempt int) time.Duration {
	if w.server > 0 {
		return w.server
	}
	return async.Jitter(0.1, async.Every(w.interval))(attempt)
}

// probe asks once. An error of it ends the wait, unless it is an async.Again.
func (w *waiter) probe(ctx context.Context, url string) (status, bool, error) {
	answer, err := ask(ctx, w.client, url)
	if answer.interval > 0 {
		w.server = answer.interval
	}
	var passing *passingError
	switch {
	case err != nil && ended(ctx): // which is why
		return w.last, false, async.Again(nil)
	case errors.As(err, &passing):
		return w.last, false, w.again(answer, err)
	case err != nil:
		return w.last, false, err
	}
	if answer.status != w.last {
		w.last = answer.status
		w.changed(w.last)
	}
	switch phase := w.last.Phase; {
	case phase == w.phase:
		return w.last, true, nil
	case phase == failed, phase == succeeded:
		return w.last, false, errors.New("the pod has ended")
	}
	return w.last, false, w.again(answer, nil)
}

// ended reports whether ctx has ended or is about to: a connection has the same
// deadline, and may be a little faster.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// again is the error of a probe after which there is to be another: when the
// server says, if that is later than it would be anyway.
func (w *waiter) again(a answer, err error) error {
	pause := w.pause(1)
	if a.after > pause {
		pause = a.after
		w.tell("%s: the server asks to wait for %v", word(a.code), pause.Round(time.Millisecond))
	} else if err != nil {
		w.tell("%s; asking again", word(err.Error()))
	}
	return async.AgainAfter(pause, err)
}

// A waitError says why a pod was not waited for any longer, and what was known
// of it then.
type waitError struct {
	want  string
	limit time.Duration
	last  status // that was seen
	err   error  // of the poll
}

// Unwrap returns the error of the poll, which matches what has stopped it.
func (e *waitError) Unwrap() error { return e.err }

// ExitStatus is that of a deadline if the wait has come to its own, that of the
// signal if there was one.
func (e *waitError) ExitStatus() int {
	if e.late() {
		return cli.StatusDeadline
	}
	return cli.Status(e.err)
}

// late reports whether the time for all has passed: a request that took too long
// has another error.
func (e *waitError) late() bool { return errors.As(e.err, new(*async.TimeoutError)) }

// Error tells why, the last phase, and the last error if that is not why.
func (e *waitError) Error() string {
	var poll *async.PollError[status]
	if !errors.As(e.err, &poll) {
		return e.err.Error() // it was stopped before it had begun
	}
	var sig *cli.SignalError
	var b strings.Builder
	lastError := poll.Err
	switch {
	case e.late():
		fmt.Fprintf(&b, "not %s within %v", e.want, e.limit)
	case errors.As(e.err, &sig):
		b.WriteString(sig.Error())
	case errors.Is(e.err, context.Canceled):
		b.WriteString("cancelled")
	default:
		b.WriteString(word(lastError.Error()))
		lastError = nil
	}
	if e.last == (status{}) {
		b.WriteString("; no phase was seen")
	} else {
		fmt.Fprintf(&b, "; last phase: %v", e.last)
	}
	fmt.Fprintf(&b, "; requests: %d", poll.Attempts)
	if lastError != nil {
		fmt.Fprintf(&b, "; last error: %s", word(lastError.Error()))
	}
	return b.String()
}
