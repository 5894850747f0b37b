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
	"unicode"
	"unicode/utf8"

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
	piece  int64          // the most that one request carries
	pause  async.Interval // between requests, by how many have brought nothing
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

// longestRest is the most that a server is left alone because it asks for it.
const longestRest = time.Hour

// push brings the server up to date with the journal as it is now. It tries
// until it has succeeded, ctx is done, or the server says that it is of no use.
func (u *uploader) push(ctx context.Context) error {
	if u.lost != nil {
		return nil // has been told
	}
	interval := func(int) time.Duration { return u.pause(u.fruitless) }
	_, err := async.Poll(ctx, interval, u.catchUp, async.Name("upload"), async.Grace(time.Second)).Await(ctx, 0)
	if err != nil && ctx.Err() == nil {
		return u.lose(plain(err))
	}
	return err
}

// lose notes why the server will never have the whole log: because of err, or
// there is no whole log.
func (u *uploader) lose(err error) error {
	if broken := u.log.Err(); broken != nil && !errors.Is(err, broken) {
		err = fmt.Errorf("%w; it cannot be kept here: %w", err, broken)
	}
	u.lost = &uploadError{err}
	return u.lost
}

// catchUp sends piece after piece, until the server has what was there at the
// beginning or something goes wrong.
func (u *uploader) catchUp(ctx context.Context) (_ struct{}, done bool, err error) {
	for size := u.log.Size(); u.sent < size; {
		before := u.sent
		err := u.patch(ctx, size)
		if u.sent > before {
			u.fruitless = 0
		}
		if err != nil {
			u.fruitless++
			u.stats.failed.Add(1)
			return struct{}{}, false, err
		}
	}
	return struct{}{}, true, nil
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
		return u.advance(answer, n)
	case http.StatusRequestedRangeNotSatisfiable:
		return u.resync(answer)
	}
	return refused(answer, u.pause(u.fruitless+1))
}

// advance goes on behind what the server has taken of n bytes. That it has taken
// none is worth another try, but not at once: it might say so for ever.
func (u *uploader) advance(answer *http.Response, n int64) error {
	was := u.sent
	if err := u.moveTo(answer, was+n); err != nil {
		return err
	}
	if u.sent <= was {
		return async.Again(fmt.Errorf("the server has accepted bytes from %d on, and is at byte %d of the log", was, u.sent))
	}
	return nil
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
			return fmt.Errorf("the server answers %s with Range %s, which is no offset", word(answer.Status), strconv.Quote(cut(r)))
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
	switch {
	case err != nil && ctx.Err() != nil: // why there was none is told by whoever ended ctx
		return nil, async.Again(fmt.Errorf("%s %s: no answer", method, r.URL.Path))
	case err != nil:
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

// refused is the error of an answer that is not what was hoped for. If another
// one may be better it is worth a try when the server says, but no sooner than
// after pause, whatever it says.
func refused(answer *http.Response, pause time.Duration) error {
	err := fmt.Errorf("%s %s: %s", answer.Request.Method, answer.Request.URL.Path, word(answer.Status))
	if s := answer.StatusCode; s != http.StatusTooManyRequests && s < 500 {
		return err
	}
	after := min(retryafter.Of(answer.Header, time.Now()), longestRest)
	return async.AgainAfter(max(after, pause), err)
}

// word is a text of the server as it can be printed: in a line, which a terminal
// does not take for a command, and not too long.
func word(s string) string {
	s = cut(s)
	if strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

func cut(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// plain is the error of a poll in words about the log: the last that went wrong,
// and that there was no time for another try if that is why it has ended.
func plain(err error) error {
	var poll *async.PollError[struct{}]
	if !errors.As(err, &poll) {
		return err
	}
	for errors.As(poll.Err, &poll) { // a poll within
	}
	late := new(async.TimeoutError)
	switch isLate := errors.As(err, &late); {
	case isLate && poll.Err != nil:
		return fmt.Errorf("not sent within %v; last error: %w", late.Limit, poll.Err)
	case isLate:
		return fmt.Errorf("not sent within %v", late.Limit)
	case poll.Err != nil:
		return poll.Err
	}
	return err
}

// An uploadError says that the server does not have the whole log.
type uploadError struct{ err error }

func (e *uploadError) Error() string { return "the log is not complete: " + e.err.Error() }
func (e *uploadError) Unwrap() error { return e.err }

// ExitStatus returns the exit status of the program.
func (e *uploadError) ExitStatus() int { return statusIncomplete }

var errTooOften = errors.New("the server does not have what it was sent")
