package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ambit-go/ambit/kvqueue"
)

// plainName is the name of a queue as a terminal can show it.
func plainName(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` || strings.ContainsRune(name, ' ') {
		return quoted
	}
	return name
}

func queuesCommand(*flag.FlagSet) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		names, err := kvqueue.Queues(ctx, e.store.kv, kvqueue.Prefix(e.prefix))
		for _, name := range names {
			switch {
			case !e.json:
				e.sayf("%s\n", plainName(name))
			case utf8.ValidString(name):
				err = errors.Join(err, e.writeJSON(map[string]any{"queue": name}))
			default:
				err = errors.Join(err, e.writeJSON(map[string]any{"base64": []byte(name)}))
			}
		}
		return err
	}
}

// filterFlags adds the flags that say which items are meant, and returns what makes a filter of them.
func filterFlags(f *flag.FlagSet, n int, dead bool) func() (kvqueue.Filter, error) {
	var filter kvqueue.Filter
	f.IntVar(&filter.Most, "n", n, "so many at most, the first of them; 0: all")
	older := f.Duration("older", 0, "only items that were added longer ago than this")
	younger := f.Duration("younger", 0, "only items that were added within this time")
	from := f.String("from", "", "only items behind this `key`")
	if dead {
		f.StringVar(&filter.Why, "why", "", "only items whose last error contains this `text`")
	}
	return func() (kvqueue.Filter, error) {
		if *older < 0 || *younger < 0 {
			return filter, usagef("-older and -younger are 0 or more")
		}
		now := time.Now()
		if *older != 0 {
			filter.Before = now.Add(-*older)
		}
		if *younger != 0 {
			filter.After = now.Add(-*younger)
		}
		var err error
		if *from != "" {
			if filter.Behind, err = kvqueue.ParseKey(*from); err != nil {
				err = usagef("-from: %v", err)
			}
		}
		return filter, err
	}
}

// filters are the flags of filterFlags.
var filters = map[string]bool{"n": true, "older": true, "younger": true, "from": true, "why": true}

// named asks for the name of the queue, unless that is not needed: what is deleted does not come back.
func (e *env) named(ctx context.Context, yes bool, what string) error {
	if yes {
		return nil
	}
	e.notef("this deletes %s of queue %s in %s", what, plainName(e.name), e.store.name)
	_, _ = fmt.Fprint(e.stderr, "kvq: write the name of the queue to go on: ")
	answer := make(chan string, 1)
	go func() { // a read that waits for a terminal cannot be ended: it ends with the process
		line, _ := bufio.NewReader(e.stdin).ReadString('\n')
		answer <- strings.TrimSuffix(line, "\n")
	}()
	select {
	case name := <-answer:
		if name == e.name || name == strconv.Quote(e.name) {
			return nil
		}
		return fmt.Errorf("%q is not its name, and nothing was deleted: write %s, or give -yes", name, plainName(e.name))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func purgeCommand(f *flag.FlagSet) func(context.Context, *env) error {
	chosen := filterFlags(f, 0, false)
	yes := f.Bool("yes", false, "do not ask")
	return func(ctx context.Context, e *env) error {
		filter, err := chosen()
		if err != nil {
			return err
		}
		if err := e.named(ctx, *yes, "ready items"); err != nil {
			return err
		}
		return e.with(ctx, func(q *kvqueue.Queue) error {
			n, err := q.Purge(ctx, filter)
			e.sayf("%d items deleted\n", n)
			return err
		})
	}
}

func deadCommand(f *flag.FlagSet) func(context.Context, *env) error {
	chosen := filterFlags(f, 100, true)
	return func(ctx context.Context, e *env) error {
		filter, err := chosen()
		if err != nil {
			return err
		}
		return e.with(ctx, func(q *kvqueue.Queue) error {
			for l, err := range q.FindDead(ctx, filter) {
				if err != nil {
					return err
				}
				if err := e.showLetter(l); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func (e *env) showLetter(l kvqueue.DeadLetter) error {
	if e.json {
		v := itemJSON(l.Item)
		v["failures"], v["crashes"], v["why"] = l.Failures, l.Crashes, l.Why
		return e.writeJSON(v)
	}
	e.sayf("%v %s failures=%d crashes=%d why=%q%s\n", l.Key, quoted(l.Value), l.Failures, l.Crashes, l.Why, ofGroup(l.Item))
	return nil
}

// letters says which dead letters a command is about: those of keys, or of a filter.
func letters(f *flag.FlagSet) func(e *env) (keys []kvqueue.Key, filter kvqueue.Filter, err error) {
	chosen := filterFlags(f, 0, true)
	all := f.Bool("all", false, "all dead letters")
	return func(e *env) (keys []kvqueue.Key, filter kvqueue.Filter, err error) {
		some := *all
		f.Visit(func(set *flag.Flag) { some = some || filters[set.Name] })
		if some == (len(e.args) > 0) {
			return nil, filter, usagef("%s needs keys, which kvq dead shows, or else -all or flags that say which", f.Name())
		}
		for _, text := range e.args {
			k, err := kvqueue.ParseKey(text)
			if err != nil {
				return nil, filter, usagef("%v", err)
			}
			keys = append(keys, k)
		}
		filter, err = chosen()
		return keys, filter, err
	}
}

// found is the error of keys of which only n were those of dead letters.
func found(n int, keys []kvqueue.Key, err error) error {
	if err == nil && n < len(keys) {
		return &statusError{fmt.Errorf("%d of the keys are not those of dead letters", len(keys)-n), 3}
	}
	return err
}

func requeueCommand(f *flag.FlagSet) func(context.Context, *env) error {
	which := letters(f)
	return func(ctx context.Context, e *env) error {
		keys, filter, err := which(e)
		if err != nil {
			return err
		}
		return e.with(ctx, func(q *kvqueue.Queue) error {
			n, err := 0, error(nil)
			if keys == nil {
				n, err = q.RequeueAll(ctx, filter)
			} else {
				n, err = q.Requeue(ctx, keys...)
			}
			e.sayf("%d items are ready again\n", n)
			return found(n, keys, err)
		})
	}
}

func discardCommand(f *flag.FlagSet) func(context.Context, *env) error {
	which := letters(f)
	yes := f.Bool("yes", false, "do not ask")
	return func(ctx context.Context, e *env) error {
		keys, filter, err := which(e)
		if err != nil {
			return err
		}
		if err := e.named(ctx, *yes || keys != nil, "dead letters"); err != nil {
			return err
		}
		return e.with(ctx, func(q *kvqueue.Queue) error {
			n, err := 0, error(nil)
			if keys == nil {
				n, err = q.DiscardAll(ctx, filter)
			} else {
				n, err = q.Discard(ctx, keys...)
			}
			e.sayf("%d items deleted\n", n)
			return found(n, keys, err)
		})
	}
}
