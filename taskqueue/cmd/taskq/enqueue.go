package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

func enqueueCommand(f *flag.FlagSet) func(context.Context, *env) error {
	var t taskqueue.Task
	f.StringVar(&t.Type, "type", "exec", "the `type`, which says what handles it")
	f.StringVar(&t.ID, "id", "", "its `id`; made if it is not given")
	f.StringVar(&t.UniqueKey, "unique", "", "a `key` that no other task may have until this one has ended")
	f.StringVar(&t.LimitKey, "limit-key", "", "a `key` that it is counted with: see taskq limit -h")
	f.DurationVar(&t.Delay, "delay", 0, "how long from now")
	f.Func("after", "the `id` of a task that is to be done before; may be given several times", func(id string) error { t.After = append(t.After, id); return nil })
	f.StringVar((*string)(&t.OnFailed), "on-failed", "", "if one of -after fails for good: `skip`, run or wait; skip if it is not given")
	at := f.String("at", "", "when, as 2006-01-02T15:04:05Z07:00")
	priority := f.Uint("priority", 0, "0 to 7, 7 is the most urgent")
	f.DurationVar(&t.Timeout, "timeout", 0, "bounds each run; 0: no bound")
	f.DurationVar(&t.Retention, "keep", 0, "how long it is kept when it has ended, at least a minute")
	f.IntVar(&t.MaxFailures, "failures", 0, fmt.Sprintf("how often it may fail; 0: %d", taskqueue.DefaultMaxFailures))
	f.IntVar(&t.MaxCrashes, "crashes", 0, fmt.Sprintf("how often its worker may die; 0: %d", taskqueue.DefaultMaxCrashes))
	expires := f.Duration("expires", 0, "if it has not been started by then, from now, it becomes a dead letter; 0: never")
	return func(ctx context.Context, e *env) (err error) {
		switch {
		case t.Delay < 0 || *expires < 0:
			return usagef("-delay and -expires are from now on, and cannot be negative")
		case *priority >= taskqueue.Priorities:
			return usagef("-priority %d: the most urgent is %d", *priority, taskqueue.Priorities-1)
		case *expires > 0:
			t.ExpiresAt = time.Now().Add(*expires)
		}
		if *at != "" {
			if t.RunAt, err = time.Parse(time.RFC3339, *at); err != nil {
				return usagef("-at %s is not a time such as %s", *at, time.Now().UTC().Format(time.RFC3339))
			}
		}
		t.Priority = uint8(*priority)
		switch {
		case len(e.args) > 1:
			return usagef("one payload, not %d: put it in quotes", len(e.args))
		case len(e.args) == 1 && e.args[0] == "-":
			t.Payload, err = io.ReadAll(io.LimitReader(e.stdin, taskqueue.MaxPayload+1)) // more is refused
		case len(e.args) == 1:
			t.Payload = []byte(e.args[0])
		}
		if err == nil && len(t.Payload) > taskqueue.MaxPayload {
			err = usagef("the payload has more than %d bytes: store it elsewhere, and enqueue where it is", taskqueue.MaxPayload)
		}
		if err != nil {
			return err
		}
		id, err := e.queue.Enqueue(ctx, t)
		if errors.Is(err, taskqueue.ErrUnknown) {
			return fmt.Errorf("%w; repeat it with -id %s to add the task once", err, id)
		}
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
