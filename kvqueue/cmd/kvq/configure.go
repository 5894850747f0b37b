package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
)

// policyFlags adds the flags of what belongs to a queue, and returns what gives the options of
// those that were set.
func policyFlags(f *flag.FlagSet) func() []kvqueue.Option {
	attempts := f.Int("attempts", 25, "an item that has failed so often is a dead letter; 0: it is tried without end; it is the queue's: see kvq configure")
	crashes := f.Int("crashes", 0, "an item whose process went away so often is a dead letter; 0: it is tried without end; it is the queue's")
	delay := f.Duration("delay", time.Second,
		"how long an item that has failed waits at first; twice as long after each failure, and a minute at most; 0: it does not wait; it is the queue's")
	retention := f.Duration("retention", 24*time.Hour, "for how long the id of an item stands at least, though the item is gone; it is the queue's")
	limit := f.Duration("limit", 0, "how long a run may take before it is stopped and has failed; 0: no limit; it is the queue's")
	return func() (options []kvqueue.Option) {
		f.Visit(func(set *flag.Flag) {
			switch set.Name {
			case "attempts":
				options = append(options, kvqueue.MaxAttempts(orNever(*attempts)))
			case "crashes":
				options = append(options, kvqueue.MaxCrashes(orNever(*crashes)))
			case "limit":
				options = append(options, kvqueue.TimeLimit(*limit))
			case "delay":
				most := max(time.Minute, *delay)
				if *delay == 0 {
					most = 0
				}
				options = append(options, kvqueue.RetryDelay(*delay, most))
			case "retention":
				options = append(options, kvqueue.Retention(*retention))
			}
		})
		return options
	}
}

// orNever is a number of runs; 0 is one that is never reached.
func orNever(n int) int {
	if n == 0 {
		return math.MaxInt
	}
	return n
}

func configureCommand(f *flag.FlagSet) func(context.Context, *env) error {
	policy := policyFlags(f)
	return func(ctx context.Context, e *env) error {
		return e.with(ctx, func(q *kvqueue.Queue) error {
			p := q.Policy()
			if options := policy(); len(options) > 0 {
				var err error
				if p, err = q.Configure(ctx, options...); err != nil {
					return err
				}
			}
			if e.json {
				return e.writeJSON(p)
			}
			e.sayf("%s\n", policyText(p))
			return nil
		})
	}
}

// policyText is a policy in words.
func policyText(p kvqueue.Policy) string {
	number := func(n int) string {
		if n == 0 || n == math.MaxInt {
			return "no"
		}
		return fmt.Sprint(n)
	}
	text := fmt.Sprintf("%s failures or %s crashes make a dead letter; after a failure an item waits %v, %v at most",
		number(p.MaxAttempts), number(p.MaxCrashes), p.RetryDelay, p.MaxRetryDelay)
	if p.TimeLimit > 0 {
		text += fmt.Sprintf("; a run is stopped after %v", p.TimeLimit)
	}
	return text + fmt.Sprintf("; an id stands for %v at least", p.Retention)
}
