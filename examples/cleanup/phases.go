//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A phase is what can be removed side by side, and the time there is for all of it.
type phase struct {
	name   string
	budget time.Duration
	urls   []string
}

// A cleaner cleans up.
type cleaner struct {
	client   *http.Client
	parallel int // requests at the same time
	out      io.Writer
	lost     error // of the first write that has failed
}

// A leftError lists what was not removed, and why.
type leftError struct {
	of   int
	errs []error
}

func (e *leftError) Error() string {
	text := fmt.Sprintf("%d of %d not removed:", len(e.errs), e.of)
	for _, err := range e.errs {
		text += "\n\t" + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return text
}

// Unwrap returns an error for each.
func (e *leftError) Unwrap() []error { return e.errs }

// cleanUp goes through the phases in order, all of them, whatever comes of each.
// It returns a leftError if something is left.
func (c *cleaner) cleanUp(ctx context.Context, plan []phase) error {
	left := new(leftError)
	for _, p := range plan {
		c.printf("phase %s, at most %v\n", p.name, p.budget)
		for i, err := range c.do(ctx, p) {
			left.of++
			if err == nil {
				c.printf("  removed %s\n", p.urls[i])
				continue
			}
			c.printf("  LEFT    %s\n", p.urls[i])
			left.errs = append(left.errs, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	if len(left.errs) > 0 {
		return left
	}
	return nil
}

// do removes what is in a phase side by side, and returns what came of each, in their
// order. When it returns, all have ended.
//
// The shield is the time of this phase: it begins now, however long the phases
// before have taken, and neither the job's end nor anything else cuts it short.
// The limit is one of a scope, so that a resource which is waited for before the
// next attempt keeps nobody else from his turn.
func (c *cleaner) do(ctx context.Context, p phase) []error {
	errs := make([]error, len(p.urls))
	_ = async.Shield(ctx, p.budget, func(ctx context.Context) error { // what went wrong is in errs
		return async.Scope(ctx, func(ctx context.Context) error {
			all := async.ForkJoin(ctx, p.urls, c.remove)
			results, err := all.Await(context.WithoutCancel(ctx), 0) // the end of ctx ends the work, and that the wait
			for i, r := range results {
				errs[i] = r.Err
			}
			return err
		}, async.Name("phase "+p.name), async.Limit(c.parallel))
	})
	return errs
}

// remove removes a resource, with as many attempts as there is time for in ctx. The error
// of the poll tells how many there were, and the last error.
func (c *cleaner) remove(ctx context.Context, url string) (struct{}, error) {
	pause := async.Jitter(0.2, async.Backoff(100*time.Millisecond, 5*time.Second))
	return async.Poll(ctx, pause, func(ctx context.Context) (struct{}, bool, error) {
		err := c.attempt(ctx, url)
		if err != nil && ctx.Err() != nil { // which is why
			err = async.Again(nil)
		}
		return struct{}{}, err == nil, err
	}, async.Name(url)).Await(context.WithoutCancel(ctx), 0) // ctx ends the poll, and that the wait
}

// stay has a redirect be an answer. It would be followed with GET: that something is there
// to be looked at does not say that anything was removed.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// attempt makes the request once. A thing that it asks to have removed is removed if it
// was not there. Its error is an Again if it may be another one next time.
func (c *cleaner) attempt(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, address, nil)
	if err != nil {
		return err
	}
	response, err := c.client.Do(request)
	var failed *url.Error
	switch {
	case errors.As(err, &failed) && failed.Timeout():
		return async.Again(fmt.Errorf("no answer within %v", c.client.Timeout))
	case err != nil:
		return async.Again(errors.Unwrap(err)) // without the URL, which the poll has for its name
	}
	_ = response.Body.Close()                       // the status says it all
	status := fmt.Errorf("%.100q", response.Status) // a terminal would take it for a command
	switch code := response.StatusCode; {
	case code < 300, code == http.StatusNotFound, code == http.StatusGone:
		return nil
	case code != http.StatusTooManyRequests && code != http.StatusRequestTimeout && code < 500:
		return status
	}
	if seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31); seconds > 0 {
		return async.AgainAfter(time.Duration(seconds)*time.Second, status)
	}
	return async.Again(status)
}
