package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
	"github.com/ambit-go/ambit/proc"
	"github.com/ambit-go/ambit/service"
)

// The answers of the server about the job.
var (
	errCanceled = errors.New("the server has canceled the job")
	errAborted  = errors.New("the server has aborted the job")
)

// run runs the scripts, and uploads what they print until the server has it all.
//
// There are two levels of a stop, each a context. The script runs under soft, the
// after-script under hard, and soft is inside hard, so a cancel ends the script and an
// abort ends both. Nothing is swapped when the one is over and the other begins: at no
// moment does a cancel hit the wrong one.
//
// The upload is inside neither. It ends when all was sent, when the time for that
// is over, when the server says that it is of no use, and at the second signal.
func (c *config) run(ctx context.Context) error {
	log, err := newJournal()
	if err != nil {
		return err
	}
	defer log.close()
	u := c.uploader(log, service.Hurry(ctx))
	defer context.AfterFunc(ctx, func() {
		say("%v: what is left to do is done, and the log is sent; once more, and it is not", context.Cause(ctx))
	})()

	var ran error
	err = async.Scope(context.WithoutCancel(ctx), func(scope context.Context) error {
		hard, abort := context.WithCancelCause(scope)
		soft, cancel := context.WithCancelCause(hard)
		defer abort(nil)
		defer context.AfterFunc(u.hurry, func() { abort(context.Cause(u.hurry)) })()
		defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
		c.upload(scope, u, cancel, abort)
		ran = c.scripts(soft, hard, u)
		return nil
	}, async.HookTimeout(c.final)) // of the last flush
	if u.lost == nil {
		u.finish(c.final)
	}
	switch {
	case u.lost != nil && errors.Is(ran, u.lost): // the job was stopped because of it
		return u.lost
	case ran != nil || u.lost != nil:
		return errors.Join(ran, u.lost)
	}
	return err
}

// uploader makes the uploader of the log.
func (c *config) uploader(log *journal, hurry context.Context) *uploader {
	return &uploader{
		client: &http.Client{
			Timeout: 30 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse // a page to log in has no log
			},
		},
		url:   strings.TrimSuffix(c.url, "/"),
		log:   log,
		piece: int64(c.size),
		hurry: hurry,
	}
}

// upload begins to upload the log, as long as scope lasts, and to heed what the server says about the job.
func (c *config) upload(scope context.Context, u *uploader, cancel, abort context.CancelCauseFunc) {
	u.heed = func(status string) {
		switch status {
		case "canceling":
			cancel(errCanceled)
		case "canceled":
			abort(errAborted)
		}
	}
	// The bytes are in the journal: a server that is slow, or away, holds up
	// neither the job nor the memory. The batch counts them, and says when.
	due := batch.New(scope, u.flush, batch.Age(c.age), batch.Size(c.size, func(n int) int { return n }))
	u.log.added = func(n int) {
		_ = due.Add(scope, n) // refused if the upload has failed: then the job ends
	}
	async.Repeat(scope, async.Every(c.touch), u.touch, async.AfterInterval(), async.Daemon(), async.Name("touch"))
}

// scripts runs the script and then the after-script, however the script has ended:
// only an abort stops that, or keeps it from being started. It cannot make the job
// fail.
func (c *config) scripts(soft, hard context.Context, u *uploader) error {
	result, err := c.step(soft, "script", c.script, u)
	// A script that has ended by itself was not cancelled, though a cancel may have come
	// since: the result has the cause for which it was stopped.
	switch {
	case err == nil:
		u.state = "success"
	case result.Cause != nil, result.Pid == 0 && soft.Err() != nil:
		u.state = "canceled"
		u.log.notef("%v", context.Cause(soft))
	default:
		u.state = "failed"
		err = fmt.Errorf("the job has failed: %w", err)
	}
	switch {
	case hard.Err() != nil:
		u.log.notef("the after-script is not run")
	case c.after != "":
		u.log.notef("after-script")
		if _, err := c.step(hard, "after-script", c.after, u, async.Timeout(5*time.Minute)); err != nil {
			u.log.notef("%v", err)
		}
	}
	return err
}

// step runs one script, with the log as its output. Its process group ends with it.
func (c *config) step(ctx context.Context, name, script string, u *uploader, opts ...async.TaskOption) (proc.Result, error) {
	return proc.Run(ctx, proc.Command{
		Args:   []string{"bash", "-c", script},
		Name:   name,
		Stdout: u.log,
		Stderr: u.log,
		Grace:  c.grace,
		Hurry:  u.hurry,
	}, opts...)
}
