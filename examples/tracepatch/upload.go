//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/batch"
	"github.com/ambit-go/ambit/examples/internal/retryafter"
)

// An uploader keeps the log at the server as long as the journal. This is what
// is said:
//
//	PATCH url/trace    Content-Range: 40-99    these bytes of the log
//
//	202  Range: 0-100                          the server has the first 100
//	416  Range: 0-20                           it has 20, and cannot take those
//	429, 5xx                                   later; Retry-After says when
//
// Every answer may say how the job stands, Job-Status, and how many seconds the
// log may be behind, Trace-Update-Interval.
type uploader struct {
	client *http.Client
	url    string
	log    *journal
	stop   *stop
	batch  *batch.Batch
	piece  int64 // the most that one request carries
	report func(format string, args ...any)
	stats  stats

	// What follows is used by push and finish, which never overlap.

	sent      int64 // what the server has, as far as we know
	fruitless int   // attempts in a row that have brought nothing
	lost      error // why the server will never have it all
}

type stats struct{ patches, failed, resynced atomic.Int64 }

// Whatever the server says, its view of the log is not older, nor younger.
const (
	shortestInterval = 100 * time.Millisecond
	longestInterval  = time.Minute
)

// push brings the server up to date with the journal as it is now. It tries
// until it has succeeded, ctx is done, or the server says that it is of no use.
func (u *uploader) push(ctx context.Context) error {
	if u.lost != nil {
		return nil // has been told
	}
	pause := async.Jitter(0.2, async.Backoff(50*time.Millisecond, 5*time.Second))
	interval := func(int) time.Duration { return pause(u.fruitless) }
	_, err := async.Poll(ctx, interval, u.catchUp, async.Name("upload"), async.Grace(time.Second)).Await(ctx, 0)
	err = lastError[int64](err)
	if err != nil && ctx.Err() == nil {
		u.lost = &uploadError{err}
		return u.lost
	}
	return err
}

// catchUp sends piece after piece, until the server has what was there at the
// beginning or something goes wrong.
func (u *uploader) catchUp(ctx context.Context) (sent int64, done bool, err error) {
	for size := u.log.Size(); u.sent < size; {
		before := u.sent
		err := u.patch(ctx, size)
		if u.sent > before {
			u.fruitless = 0
		}
		if err != nil {
			u.fruitless++
			u.stats.failed.Add(1)
			return u.sent, false, err
		}
	}
	return u.sent, true, nil
}

// patch sends one piece of the first size bytes.
func (u *uploader) patch(ctx context.Context, size int64) error {
	n := min(u.piece, size-u.sent)
	u.stats.patches.Add(1)
	answer, err := u.do(ctx, http.MethodPatch, "/trace", u.log.section(u.sent, n), func(r *http.Request) {
		r.ContentLength = n
		r.Header.Set("Content-Type", "text/plain")
		r.Header.Set("Content-Range", fmt.Sprintf("%d-%d", u.sent, u.sent+n-1))
	})
	if err != nil {
		return err
	}
	switch answer.StatusCode {
	case http.StatusAccepted:
		was := u.sent
		if err := u.moveTo(answer, u.sent+n); err != nil || u.sent > was {
			return err
		}
		return async.Again(errNothingTaken) // not at once, or there would be no end to it
	case http.StatusRequestedRangeNotSatisfiable:
		return u.resync(answer)
	}
	return refused(answer)
}

// resync goes on where the server is. That is ahead of us if an answer was lost,
// and behind if the server has lost something.
func (u *uploader) resync(answer *http.Response) error {
	was := u.sent
	if err := u.moveTo(answer, -1); err != nil {
		return err
	}
	u.stats.resynced.Add(1)
	u.report("the server has %d bytes of the log, not %d: resynchronised", u.sent, was)
	if u.sent <= was { // it has lost something; should it do so again and again, not too fast
		return async.Again(fmt.Errorf("the server is at byte %d of the log", u.sent))
	}
	return nil
}

// moveTo takes the offset of the server from an answer, or by if it has none.
func (u *uploader) moveTo(answer *http.Response, by int64) error {
	at := by
	if r := answer.Header.Get("Range"); r != "" || by < 0 {
		_, end, _ := strings.Cut(r, "-")
		var err error
		if at, err = strconv.ParseInt(end, 10, 64); err != nil || at < 0 {
			return fmt.Errorf("the server answers %s with Range %q, which is no offset", answer.Status, r)
		}
	}
	if size := u.log.Size(); at > size {
		return fmt.Errorf("the server has %d bytes of a log that has %d: it is another one", at, size)
	}
	u.sent = at
	return nil
}

// touch asks how the job stands, for when there is nothing to send.
func (u *uploader) touch(ctx context.Context) error {
	_, _ = u.update(ctx, update{State: "running"}) // the next one may do better
	return nil
}

// do sends a request, reads the answer, and heeds what that says beside it.
func (u *uploader) do(ctx context.Context, method, path string, body io.Reader, change func(*http.Request)) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, u.url+path, body)
	if err != nil {
		return nil, err
	}
	change(r)
	answer, err := u.client.Do(r)
	if err != nil {
		return nil, async.Again(err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be used again
	u.stop.heed(answer.Header.Get("Job-Status"))
	if s, err := strconv.ParseFloat(answer.Header.Get("Trace-Update-Interval"), 64); err == nil && s > 0 {
		d := time.Duration(min(s, longestInterval.Seconds()) * float64(time.Second))
		u.batch.SetAge(max(d, shortestInterval))
	}
	return answer, nil
}

// refused is the error of an answer that is not what was hoped for.
func refused(answer *http.Response) error {
	err := fmt.Errorf("%s %s: %s", answer.Request.Method, answer.Request.URL.Path, answer.Status)
	switch s := answer.StatusCode; {
	case s != http.StatusTooManyRequests && s < 500:
		return err
	default:
		if d := retryafter.Of(answer.Header, time.Now()); d > 0 {
			return async.AgainAfter(min(d, time.Hour), err)
		}
		return async.Again(err)
	}
}

// An uploadError says that the server does not have the whole log.
type uploadError struct{ err error }

func (e *uploadError) Error() string { return "the log is not complete: " + e.err.Error() }
func (e *uploadError) Unwrap() error { return e.err }

// ExitStatus returns the exit status of the program.
func (e *uploadError) ExitStatus() int { return statusIncomplete }

var errNothingTaken = errors.New("the server has taken nothing of what it was sent")

var errTooOften = errors.New("the server does not have what it was sent")

// lastError puts what the last attempt has come to in front, which is what a
// user wants to know of a poll, and without the poll's own words.
func lastError[T any](err error) error {
	var poll *async.PollError[T]
	switch {
	case !errors.As(err, &poll) || poll.Err == nil:
		return err
	case errors.As(err, new(*async.TimeoutError)), errors.Is(err, context.DeadlineExceeded):
		return &late{last: poll.Err, err: err}
	}
	return poll.Err
}

// A late error says that the time was over.
type late struct{ last, err error }

func (e *late) Error() string { return "no time left; last error: " + e.last.Error() }
func (e *late) Unwrap() error { return e.err }
