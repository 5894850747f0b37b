package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/proc"
)

// statusReturn of a command gives its item back, and no attempt is spent: EX_TEMPFAIL.
const statusReturn = 75

// mostInEnvironment is how long an item may be that is in the environment of its command.
const mostInEnvironment = 64 << 10

// A taker runs a command for items.
type taker struct {
	*env
	q       *kvqueue.Queue
	command []string
	grace   time.Duration

	mu sync.Mutex // of stdout
}

func takeCommand(f *flag.FlagSet) func(context.Context, *env) error {
	workers := f.Int("workers", 1, "how many items are worked on at the same time")
	once := f.Bool("once", false, "take one item, wait for it if there is none, and end with the status of its command")
	empty := f.Bool("until-empty", false, "end when no item is ready; with -once: do not wait, and end with 3 if there is none")
	policy := policyFlags(f)
	ttl := f.Duration("ttl", 10*time.Second, "after which time without a sign of life others get the items of this process")
	grace := f.Duration("grace", 5*time.Second, "how long a command may take to end when it was told to stop")
	return func(ctx context.Context, e *env) error {
		if *workers < 1 {
			return usagef("-workers is 1 or more, not %d", *workers)
		}
		e.options = append(e.options, kvqueue.TTL(*ttl), kvqueue.Observe(e.tell))
		e.options = append(e.options, policy()...)
		return e.with(ctx, func(q *kvqueue.Queue) error {
			t := &taker{env: e, q: q, command: e.args, grace: *grace}
			switch {
			case *once:
				return t.once(ctx, *empty)
			case *empty:
				return t.untilEmpty(ctx, *workers)
			}
			return q.Consume(ctx, *workers, 1, t.handle)
		})
	}
}

// tell says on stderr what goes wrong.
func (e *env) tell(r kvqueue.Report) {
	switch r.Kind {
	case kvqueue.Failed:
		e.notef("an item has failed, and is tried again: %s", r.Why)
	case kvqueue.Died:
		e.notef("an item is a dead letter, see kvq dead: %s", r.Why)
	case kvqueue.Lost:
		e.notef("claims on %d items were lost: others may work on them: %s", r.Items, r.Why)
	case kvqueue.StoreFailed:
		e.notef("the store does not answer, nothing is claimed: %s", r.Why)
	case kvqueue.StoreBack:
		e.notef("the store answers again")
	case kvqueue.Overdue:
		e.notef("the run of %d items is stopped: %s", r.Items, r.Why)
	case kvqueue.Overruled:
		e.notef("%s; kvq configure changes that", r.Why)
	case kvqueue.Reaped:
		e.notef("%d items of a process that went away are ready again", r.Items)
	}
}

// once handles one item, and returns how that went.
func (t *taker) once(ctx context.Context, try bool) error {
	if !try {
		return outcome(t.q.Do(ctx, 1, t.handle))
	}
	found := false
	err := t.try(ctx, &found)
	if err == nil && !found {
		return &statusError{errors.New("no item is ready"), 3}
	}
	return outcome(err)
}

// outcome gives the failure of a command its own exit status.
func outcome(err error) error {
	var exit *proc.ExitError
	if errors.As(err, &exit) && exit.Result.Cause == nil && exit.Result.Status() > 0 {
		return &statusError{err, exit.Result.Status()}
	}
	return err
}

// try handles an item if one is ready.
func (t *taker) try(ctx context.Context, found *bool) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		items, err := t.q.TryTake(ctx, 1)
		if *found = len(items) > 0; err != nil || !*found {
			return err
		}
		return t.handle(ctx, items)
	})
}

// untilEmpty handles items until none is ready.
func (t *taker) untilEmpty(ctx context.Context, workers int) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		for range workers {
			async.Go(ctx, func(ctx context.Context) error {
				for found := true; found; {
					if err := t.try(ctx, &found); err != nil && (!found || ctx.Err() != nil) {
						return err // the failure of an item is its own affair
					}
				}
				return nil
			})
		}
		return nil
	})
}

// handle runs the command for an item, or writes the item to stdout. It acknowledges what is
// done, also if it was told to stop meanwhile.
func (t *taker) handle(ctx context.Context, items []kvqueue.Item) error {
	for _, item := range items {
		err := t.one(ctx, item)
		var exit *proc.ExitError
		switch {
		case err == nil:
			err = t.q.Ack(context.WithoutCancel(ctx), item)
		case errors.As(err, &exit) && exit.Result.Code == statusReturn:
			err = errors.Join(err, t.q.Nack(context.WithoutCancel(ctx), nil, item))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *taker) one(ctx context.Context, item kvqueue.Item) error {
	if len(t.command) == 0 {
		t.mu.Lock()
		defer t.mu.Unlock()
		_, err := t.stdout.Write(append(item.Value[:len(item.Value):len(item.Value)], '\n'))
		return err
	}
	vars := []string{"KVQ_QUEUE=" + t.name, "KVQ_KEY=" + item.Key.String(), fmt.Sprint("KVQ_ATTEMPT=", item.Attempt), fmt.Sprint("KVQ_FENCE=", item.Fence)}
	if item.Group != "" && strings.IndexByte(item.Group, 0) < 0 {
		vars = append(vars, "KVQ_GROUP="+item.Group)
	}
	if len(item.Value) <= mostInEnvironment && bytes.IndexByte(item.Value, 0) < 0 {
		vars = append(vars, "KVQ_ITEM="+string(item.Value))
	}
	_, err := proc.Run(ctx, proc.Command{
		Args:  t.command,
		Env:   append(os.Environ(), vars...),
		Stdin: bytes.NewReader(item.Value), Stdout: t.stdout, Stderr: t.stderr,
		Grace: t.grace, DieWithParent: true,
	})
	return err
}
