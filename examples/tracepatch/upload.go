package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
)

// An uploader keeps the log at the server as long as the journal. This is what is
// said:
//
//	PATCH url/trace    Content-Range: 40-99    these bytes of the log
//	PUT url            State, Size             running; or how the job has ended, and how long its log is
//
//	200                          so it is
//	202  Range: 0-100            the server has the first 100 bytes
//	416  Range: 0-20             it has 20, and they do not fit
//	5xx                          later
//
// Every answer may say what is to become of the job, Job-Status.
type uploader struct {
	client *http.Client
	url    string
	log    *journal
	piece  int64               // the most that one request carries
	hurry  context.Context     // done when nothing more is to be sent
	heed   func(status string) // told the Job-Status of each answer
	state  string              // how the job has ended

	// The fields below are used by flush and finish, which never overlap.

	sent      int64 // what the server has, as far as we know
	fruitless int   // attempts in a row that have brought nothing
	lost      error // why the server will never have it all
}

// flush is called when there is enough to send, or some of it is old enough, and a
// last time when the job is over, whose ctx lasts for as long as -final says.
func (u *uploader) flush(ctx context.Context, _ []int) error {
	if u.lost == nil {
		u.lost = u.try(ctx, 0, u.catchUp)
	}
	return u.lost
}

// finish says how the job has ended, and sends what the server has lost since, until
// that says that it has all.
func (u *uploader) finish(limit time.Duration) {
	size := u.log.len()
	u.lost = u.try(u.hurry, limit, func(ctx context.Context) error {
		if err := u.catchUp(ctx); err != nil {
			return err
		}
		answer, err := u.do(ctx, http.MethodPut, "", nil, map[string]string{"State": u.state, "Size": fmt.Sprint(size)})
		if err != nil || answer.StatusCode == http.StatusOK {
			return err
		}
		return u.moveTo(answer)
	})
	if u.lost == nil {
		say("the server has all %d bytes", size)
	}
}

// try calls f until it has succeeded, u.hurry is done, the limit has passed if there
// is one, or f says that there is no use. The pauses grow as long as nothing is
// brought.
func (u *uploader) try(ctx context.Context, limit time.Duration, f func(ctx context.Context) error) error {
	backoff := async.Jitter(0.2, async.Backoff(50*time.Millisecond, 5*time.Second))
	pause := func(int) time.Duration { return backoff(u.fruitless) }
	_, err := async.Poll(ctx, pause, func(ctx context.Context) (struct{}, bool, error) {
		before := u.sent
		err := f(ctx)
		if u.fruitless++; u.sent > before {
			u.fruitless = 1
		}
		return struct{}{}, true, err
	}, async.Name("upload"), async.Grace(time.Second)).Await(u.hurry, limit)
	if err == nil {
		return nil
	}
	return fmt.Errorf("the log is not complete, the server has %d of %d bytes: %w", u.sent, u.log.len(), err)
}

// catchUp sends piece after piece, until the server has what was there at the
// beginning.
func (u *uploader) catchUp(ctx context.Context) error {
	for size := u.log.len(); u.sent < size; {
		n := min(u.piece, size-u.sent)
		answer, err := u.do(ctx, http.MethodPatch, "/trace", u.log.section(u.sent, n),
			map[string]string{"Content-Range": fmt.Sprintf("%d-%d", u.sent, u.sent+n-1)})
		if err == nil {
			err = u.moveTo(answer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// moveTo goes on where the server says that it is: behind what was sent, or ahead of
// that if an answer was lost, or further back if the server has lost something.
func (u *uploader) moveTo(answer *http.Response) error {
	if s := answer.StatusCode; s != http.StatusAccepted && s != http.StatusRequestedRangeNotSatisfiable {
		err := fmt.Errorf("%s %s: %q", answer.Request.Method, answer.Request.URL.Path, answer.Status)
		if s >= 500 {
			return async.Again(err)
		}
		return err
	}
	_, end, _ := strings.Cut(answer.Header.Get("Range"), "-")
	at, err := strconv.ParseInt(end, 10, 64)
	if err != nil || at < 0 || at > u.log.len() {
		return fmt.Errorf("the server says that it has %q of a log of %d bytes: it is another one", answer.Header.Get("Range"), u.log.len())
	}
	was := u.sent
	if u.sent = at; at <= was { // worth another try, but not at once: it might say so for ever
		return async.Again(fmt.Errorf("the server was at byte %d of the log, and is at %d", was, at))
	}
	return nil
}

// touch asks how the job stands, for when there is nothing to send. The end of the job
// does not cut it short: what is on its way might come after the word that the job is
// over, and the job would be running for ever.
func (u *uploader) touch(context.Context) error {
	_, _ = u.do(u.hurry, http.MethodPut, "", nil, map[string]string{"State": "running"}) // the next one may do better
	return nil
}

// do sends a request, reads the answer, and heeds what that says about the job.
func (u *uploader) do(ctx context.Context, method, path string, body io.Reader, header map[string]string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, u.url+path, body)
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		r.Header.Set(k, v)
	}
	answer, err := u.client.Do(r)
	if err != nil && ctx.Err() != nil { // why there is none is told by whoever has ended ctx
		return nil, async.Again(errors.New("no answer"))
	}
	if err != nil {
		return nil, async.Again(err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be used again
	u.heed(answer.Header.Get("Job-Status"))
	return answer, nil
}
