package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/proc"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

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
		e.observe = (&teller{e: e, said: map[string]time.Time{}}).tell
		if !*empty {
			e.notef("runs tasks of type %s in queue %s; the first interrupt lets those that run end, the second stops them", plain.Line(*only), plain.Line(e.queue.Name()))
		}
		return e.queue.Work(ctx, taskqueue.Handlers{*only: func(ctx context.Context, c *taskqueue.Claim) error {
			return e.exec(ctx, *command, c)
		}}, opts...)
	}
}

// exec runs a command for a task. Its output on stdout is the result of the task, and its last line on stderr the reason
// of a failure.
func (e *env) exec(ctx context.Context, command string, c *taskqueue.Claim) error {
	out, last := new(head), new(tail)
	_, err := proc.Run(ctx, proc.Command{
		Args:   []string{"sh", "-c", command},
		Env:    append(os.Environ(), "TASKQ_ID="+c.ID, "TASKQ_TYPE="+c.Type, fmt.Sprintf("TASKQ_ATTEMPT=%d", c.Attempt), fmt.Sprintf("TASKQ_TOKEN=%d", c.Token)),
		Stdin:  bytes.NewReader(c.Payload),
		Stdout: out,
		Stderr: io.MultiWriter(e.stderr, last),
	})
	c.SetResult(out.b)
	if line := last.line(); err != nil && line != "" {
		err = fmt.Errorf("%w: %s", err, line)
	}
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

// maxReason is how much of the last line that a command writes to stderr is kept as the reason of a failure.
const maxReason = 200

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	t.b = t.b[max(len(t.b)-4<<10, 0):]
	return len(p), nil
}

// line is the last line that is not empty.
func (t *tail) line() string {
	text := strings.TrimSpace(string(t.b))
	return strings.ToValidUTF8(plain.Head(strings.TrimSpace(text[strings.LastIndexAny(text, "\r\n")+1:]), maxReason), "?")
}

// A teller says on stderr what goes wrong, the same thing not more often than once a
// minute: a store that is away would be told of again and again.
type teller struct {
	e    *env
	mu   sync.Mutex
	said map[string]time.Time
}

func (t *teller) tell(event taskqueue.Event) {
	switch event.Kind {
	case taskqueue.EventFailed:
		t.e.notef("task %s has failed: %s", plain.Line(event.ID), why(event))
	case taskqueue.EventDead:
		t.e.notef("task %s is a dead letter; taskq retry %s runs it again", plain.Line(event.ID), plain.Line(event.ID))
	case taskqueue.EventLost:
		t.e.notef("task %s has lost its lease, or the store could not be told how it has ended: it runs again", plain.Line(event.ID))
	case taskqueue.EventUnknown:
		if t.now("type " + event.Type) {
			t.e.notef("gives back tasks of type %s: a worker with -type %s runs them", plain.Line(event.Type), plain.Line(event.Type))
		}
	case taskqueue.EventStore:
		if t.now("store") {
			t.e.notef("the store does not answer, and is asked again: %s", why(event))
		}
	}
}

// now reports whether something is to be said again.
func (t *teller) now(what string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, ok := t.said[what]
	if ok && time.Since(last) < time.Minute || !ok && what != "store" && len(t.said) > 100 { // tasks may be of any number of types
		return false
	}
	t.said[what] = time.Now()
	return true
}

// why is the error of an event.
func why(e taskqueue.Event) string {
	if e.Err == nil {
		return "it is not known why"
	}
	return oneLine(e.Err.Error())
}
