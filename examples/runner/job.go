//go:build unix

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/proc"
)

// course is the course of a job: its attempts, and what it leaves to later ones. An error is the runner's own, no
// failure of the job.
func (r *runner) course(soft, hard context.Context, j *job) (state, error) {
	log, err := r.openLog(j.name)
	if err != nil {
		return failed, err
	}
	defer log.close()
	begin := time.Now()
	r.say("%s: begins", j.name)
	attempt := 0
	_, err = async.Retry(soft, async.Backoff(100*time.Millisecond, 10*time.Second), func(soft context.Context) (struct{}, error) {
		if attempt++; attempt > 1 {
			r.say("%s: attempt %d", j.name, attempt)
		}
		return struct{}{}, r.attempt(soft, hard, j, log)
	}, async.Attempts(1+j.retry), async.Name(j.name))
	took := time.Since(begin).Round(time.Millisecond)
	switch {
	case err == nil:
		r.say("%s: success, %v", j.name, took)
		return succeeded, nil
	case soft.Err() != nil && errors.Is(err, context.Cause(soft)): // it did not end by itself, before the stop
		r.say("%s: canceled, %v: %v", j.name, took, reason(err))
		return canceled, nil
	default:
		r.say("%s: failed, %v: %v", j.name, took, reason(err))
		for _, line := range log.tail() {
			r.say("%s| %s", j.name, line)
		}
		return failed, nil
	}
}

// reason is how the script of the last attempt has ended, and why, without the words of the tasks around it.
func reason(err error) error {
	var exit *proc.ExitError
	if errors.As(err, &exit) {
		return exit
	}
	var retried *async.PollError[struct{}]
	if errors.As(err, &retried) && retried.Err != nil {
		return retried.Err
	}
	return err
}

// attempt runs the scripts of a job once, in a directory of its own that is removed at the end. An attempt is joined
// before the next one begins: nothing of it is left.
func (r *runner) attempt(soft, hard context.Context, j *job, log *jobLog) error {
	work, err := os.MkdirTemp("", "job")
	if err != nil {
		return err
	}
	defer func() {
		if err := remove(work); err != nil {
			r.say("%s: its directory is left: %v", j.name, err)
		}
	}()
	// Those of an earlier attempt, or of an earlier run in the same directory, are not this one's.
	if err := os.RemoveAll(r.artifacts(j.name)); err != nil {
		return err
	}

	for _, need := range j.needs {
		log.section("artifacts of " + need)
		if err := r.fetch(need, work); err != nil {
			return err
		}
	}
	log.section("script")
	err = r.script(soft, hard, j, work, log)
	if j.after != "" && hard.Err() == nil {
		log.section("after-script")
		if err := r.after(hard, j, work, log); err != nil {
			log.note("the after-script: %v", err) // changes nothing
		}
	}
	if err != nil {
		return err
	}
	log.section("artifacts")
	return r.keep(j, work)
}

// remove removes a directory and all that is in it, read-only directories as well, such as those of a module cache.
func remove(dir string) error {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
