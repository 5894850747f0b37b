package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ambit-go/ambit/proc"
	"github.com/ambit-go/ambit/taskqueue"
)

func enqueueCommand(f *flag.FlagSet) func(context.Context, *env) error {
	var t taskqueue.Task
	f.StringVar(&t.Type, "type", "exec", "the `type`, which says what handles it")
	f.StringVar(&t.ID, "id", "", "its `id`; made if it is not given")
	f.StringVar(&t.UniqueKey, "unique", "", "a `key` that no other task may have until this one has ended")
	f.DurationVar(&t.Delay, "delay", 0, "how long from now")
	at := f.String("at", "", "when, as 2006-01-02T15:04:05Z07:00")
	priority := f.Uint("priority", 0, "0 to 7, 7 is the most urgent")
	f.DurationVar(&t.Timeout, "timeout", 0, "bounds each run; 0: no bound")
	f.DurationVar(&t.Retention, "keep", 0, "how long it is kept when it has ended, at least a minute")
	f.IntVar(&t.MaxFailures, "failures", 0, fmt.Sprintf("how often it may fail; 0: %d", taskqueue.DefaultMaxFailures))
	f.IntVar(&t.MaxCrashes, "crashes", 0, fmt.Sprintf("how often its worker may die; 0: %d", taskqueue.DefaultMaxCrashes))
	return func(ctx context.Context, e *env) (err error) {
		if *at != "" {
			if t.RunAt, err = time.Parse(time.RFC3339, *at); err != nil {
				return usagef("-at %s is not a time such as %s", *at, time.Now().UTC().Format(time.RFC3339))
			}
		}
		t.Priority = uint8(min(*priority, 255))
		switch {
		case len(e.args) > 1:
			return usagef("one payload, not %d: put it in quotes", len(e.args))
		case len(e.args) == 1 && e.args[0] == "-":
			t.Payload, err = io.ReadAll(e.stdin)
		case len(e.args) == 1:
			t.Payload = []byte(e.args[0])
		}
		if err != nil {
			return err
		}
		id, err := e.queue.Enqueue(ctx, t)
		if err != nil {
			return err
		}
		if e.json {
			return json.NewEncoder(e.stdout).Encode(map[string]string{"id": id})
		}
		_, err = fmt.Fprintln(e.stdout, id)
		return err
	}
}

// How the exit status of a command decides, after sysexits.h.
const (
	statusRelease = 75 // EX_TEMPFAIL: given back, no attempt spent
	statusDead    = 65 // EX_DATAERR: a dead letter
)

func workCommand(f *flag.FlagSet) func(context.Context, *env) error {
	command := f.String("exec", "", "the `command`, run by sh -c: the payload is on its stdin, TASKQ_ID, TASKQ_TYPE, TASKQ_ATTEMPT and TASKQ_TOKEN in its environment. Status 0: done. 65: a dead letter. 75: given back. Else it has failed")
	only := f.String("type", "exec", "the `type` of the tasks that it runs")
	n := f.Int("concurrency", 0, "how many run at the same time; 0: twice the processors and two")
	lease := f.Duration("lease", taskqueue.DefaultLease, "how long a worker that is silent keeps its tasks")
	grace := f.Duration("grace", taskqueue.DefaultShutdownGrace, "how long tasks may go on at the end")
	empty := f.Bool("until-empty", false, "end when nothing is due")
	return func(ctx context.Context, e *env) error {
		if *command == "" {
			return usagef("-exec says what is run for each task")
		}
		opts := []taskqueue.WorkOption{taskqueue.Lease(*lease), taskqueue.ShutdownGrace(*grace)}
		if *n > 0 {
			opts = append(opts, taskqueue.Concurrency(*n))
		}
		if *empty {
			opts = append(opts, taskqueue.WorkUntilEmpty())
		}
		return e.queue.Work(ctx, taskqueue.Handlers{*only: func(ctx context.Context, c *taskqueue.Claim) error {
			return e.exec(ctx, *command, c)
		}}, opts...)
	}
}

// exec runs a command for a task. What it writes to stdout is the result of the task.
func (e *env) exec(ctx context.Context, command string, c *taskqueue.Claim) error {
	out := new(head)
	_, err := proc.Run(ctx, proc.Command{
		Args:   []string{"sh", "-c", command},
		Env:    append(os.Environ(), "TASKQ_ID="+c.ID, "TASKQ_TYPE="+c.Type, fmt.Sprintf("TASKQ_ATTEMPT=%d", c.Attempt), fmt.Sprintf("TASKQ_TOKEN=%d", c.Token)),
		Stdin:  bytes.NewReader(c.Payload),
		Stdout: out,
		Stderr: e.stderr,
	})
	c.SetResult(out.b)
	var exit *proc.ExitError
	if errors.As(err, &exit) {
		switch exit.Result.Code {
		case statusDead:
			return taskqueue.Dead(err)
		case statusRelease:
			return taskqueue.Release(err)
		}
	}
	return err
}

// maxResult is how much of what a command writes is kept as the result of its task.
const maxResult = 64 << 10

// head keeps the beginning of what is written to it.
type head struct{ b []byte }

func (h *head) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), maxResult-len(h.b))]...)
	return len(p), nil
}
