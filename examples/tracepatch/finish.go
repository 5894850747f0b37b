//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/ambit-go/ambit/async"
)

// An update tells the server how the job stands. At its end it says what the log
// must be:
//
//	PUT url    {"state": "success", "bytes": 1234, "checksum": "sha256:..."}
//
//	200    the log is there, and is that
//	202    accepted, but not completed: ask again
//	412    the log is another one, and was thrown away: send it again
type update struct {
	State    string `json:"state"` // running, success, failed, canceled
	Code     int    `json:"exit_code"`
	Bytes    int64  `json:"bytes,omitempty"`
	Checksum string `json:"checksum,omitempty"`
}

func (u *uploader) update(ctx context.Context, what update) (*http.Response, error) {
	body, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	return u.do(ctx, http.MethodPut, "", bytes.NewReader(body), func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
	})
}

// finish sends what is left of the log and tells the server how the job has
// ended, until it agrees that this is the log. It is called when the job is over
// and everything in its scope has ended, with a ctx of its own: that of the job
// is dead by then, more often than not.
func (u *uploader) finish(ctx context.Context, j *job) error {
	if u.lost != nil {
		return nil // has been told
	}
	if err := u.push(ctx); err != nil {
		return u.incomplete(err)
	}
	var attempts, resends int
	pause := async.Jitter(0.2, async.Backoff(50*time.Millisecond, 2*time.Second))
	_, err := async.Poll(ctx, pause, func(ctx context.Context) (struct{}, bool, error) {
		attempts++
		done, err := u.conclude(ctx, j, &resends, pause(attempts))
		return struct{}{}, done, err
	}, async.Name("conclude"), async.Grace(time.Second)).Await(ctx, 0)
	if err == nil {
		err = u.log.Err()
	}
	return u.incomplete(err)
}

// conclude tells the server once, and sends the log again if it must. pause is
// the least before it is to be called again.
func (u *uploader) conclude(ctx context.Context, j *job, resends *int, pause time.Duration) (done bool, err error) {
	const most = 3
	what := update{State: j.state, Code: j.code}
	what.Bytes, what.Checksum = u.log.Sum()
	answer, err := u.update(ctx, what)
	if err != nil {
		return false, err
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusAccepted:
		return false, async.Again(fmt.Errorf("the server is still at it"))
	case http.StatusPreconditionFailed:
		if *resends++; *resends > most {
			return false, errTooOften
		}
		u.report("the server has another log: sending it again")
		u.sent = 0
		if err := u.push(ctx); err != nil {
			return false, err
		}
		return false, async.Again(errTooOften)
	}
	return false, refused(answer, pause)
}

// incomplete is nil, or an uploadError.
func (u *uploader) incomplete(err error) error {
	if err == nil {
		return nil
	}
	if u.lost != nil {
		return u.lost
	}
	return u.lose(fmt.Errorf("the server has %d of %d bytes: %w", u.sent, u.log.Size(), plain(err)))
}
