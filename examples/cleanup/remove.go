package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/retryafter"
)

// A request removes a resource.
type request struct{ method, url string }

func (r request) String() string { return r.method + " " + r.url }

// A removal is what came of a request.
type removal struct {
	request
	attempts int
	err      error // nil if the resource is gone
}

func (r removal) String() string {
	word := "removed"
	if r.err != nil {
		word = "LEFT   "
	}
	return fmt.Sprintf("%s %v, attempts: %d", word, r.request, r.attempts)
}

// remove removes a resource, with as many attempts as there is time for in ctx.
// A failure is its outcome: for the phase it is none.
func (c *cleaner) remove(ctx context.Context, r request) (removal, error) {
	result := removal{request: r}
	pause := async.Jitter(0.2, async.Backoff(100*time.Millisecond, 5*time.Second))
	poll := async.Poll(ctx, pause, func(ctx context.Context) (struct{}, bool, error) {
		result.attempts++
		err := c.attempt(ctx, r)
		if err != nil && ended(ctx) { // which is why
			err = async.Again(nil)
		}
		return struct{}{}, err == nil, err
	}, async.Name(r.String()))
	_, result.err = poll.Await(context.WithoutCancel(ctx), 0) // ctx ends the poll, and that the wait
	return result, nil
}

// ended reports whether ctx has ended or is about to: a connection has the same
// deadline, and may be a little faster.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// attempt makes the request once. What it asks to have removed is removed if it
// was not there. Its error is an Again if it may be another one next time.
func (c *cleaner) attempt(ctx context.Context, r request) error {
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, nil)
	if err != nil {
		return err
	}
	response, err := c.client.Do(req)
	if err != nil {
		return async.Again(c.why(err))
	}
	_ = response.Body.Close() // the status says it all
	switch code := response.StatusCode; {
	case code < 300, code == http.StatusNotFound, code == http.StatusGone:
		return nil
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		err := errors.New(response.Status)
		if d := retryafter.Of(response.Header, time.Now()); d > 0 {
			return async.AgainAfter(d, err)
		}
		return async.Again(err)
	default:
		return errors.New(response.Status)
	}
}

// why is an error of the client without the URL, which the report names.
func (c *cleaner) why(err error) error {
	var e *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v", c.client.Timeout)
	case errors.As(err, &e):
		return e.Err
	}
	return err
}
