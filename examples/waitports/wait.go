package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A target is a service to wait for.
type target struct {
	name, address string
	limit         time.Duration
	probe         probe
}

// parseTargets reads what is to be waited for: [name=]host:port[@limit], or a URL in
// place of host:port. limit is that of those that have none.
func parseTargets(args []string, limit time.Duration) (targets []target, err error) {
	if len(args) == 0 {
		return nil, usage("name what to wait for, like db=127.0.0.1:5432")
	}
	for _, arg := range args {
		t := target{limit: limit}
		rest := arg
		if at := strings.LastIndexByte(arg, '@'); at > strings.LastIndexByte(arg, '/') {
			rest = arg[:at]
			if t.limit, err = time.ParseDuration(arg[at+1:]); err != nil || t.limit <= 0 {
				return nil, usage("%q: the limit must be a time like 10s or 2m, not %q", arg, arg[at+1:])
			}
		}
		var named bool
		if t.name, t.address, named = strings.Cut(rest, "="); !named || strings.Contains(t.name, "/") {
			t.name, t.address = rest, rest // a = in a URL is its own
		}
		t.name, t.probe = cmp.Or(t.name, t.address), podProbe(t.address)
		if u, err := url.Parse(t.address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			t.probe = portProbe(t.address)
			host, port, err := net.SplitHostPort(t.address)
			if _, unknown := net.LookupPort("tcp", port); err != nil || unknown != nil || host == "" || port == "" {
				return nil, usage("%q: %q is neither host:port, like 127.0.0.1:5432, nor the URL of a pod", arg, t.address)
			}
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// An outcome is what became of a target.
type outcome struct {
	target
	took     time.Duration
	attempts int
	err      error // why it is not up; nil if it is
}

// A waiter waits for targets.
type waiter struct {
	any      bool          // one that is up is enough
	interval time.Duration // the longest pause between probes
	steady   int           // probes in a row that have to say that it is up
	tell     func(format string, args ...any)
}

// wait waits for all targets, or until any is up. It returns an outcome for each,
// in their order, also when ctx ends before. A target that is not up is an outcome of its own,
// and no failure of the whole.
//
// With w.any the first that is up decides. The others are told so by their context, and
// the scope waits until they have noticed: nothing runs on when it has returned.
func (w *waiter) wait(ctx context.Context, targets []target) []outcome {
	outcomes := make([]outcome, len(targets))
	var tasks []func(context.Context) (struct{}, error)
	for i, t := range targets {
		outcomes[i] = outcome{target: t, err: context.Canceled} // unless its turn comes
		tasks = append(tasks, func(ctx context.Context) (struct{}, error) {
			outcomes[i] = w.waitOne(ctx, t)
			return struct{}{}, outcomes[i].err
		})
	}
	_ = async.Scope(ctx, func(ctx context.Context) error { // what went wrong is in the outcomes
		if w.any {
			_, err := async.Any(ctx, tasks...).Await(ctx, 0)
			return err
		}
		_, err := async.Settle(ctx, tasks...).Await(ctx, 0)
		return err
	}, async.Name("wait"))
	return outcomes
}

// attemptLimit is how long a host may take to answer that drops what it does not
// want. It is asked again then: it may have changed its mind.
const attemptLimit = 5 * time.Second

// waitOne waits for one target until it is up, it will never be, its limit has passed,
// or ctx ends. The poll is awaited without ctx: ctx ends the poll, and that the wait.
func (w *waiter) waitOne(ctx context.Context, t target) outcome {
	o := outcome{target: t}
	begin, streak, said := time.Now(), 0, ""
	pause := async.Jitter(0.2, async.Backoff(min(10*time.Millisecond, w.interval), w.interval))
	_, o.err = async.Poll(ctx, pause, func(ctx context.Context) (string, bool, error) {
		limited, cancel := context.WithTimeout(ctx, attemptLimit)
		defer cancel()
		o.attempts++
		seen, up, err := t.probe(limited)
		news := cmp.Or(seen, fmt.Sprint(err))
		switch {
		case up:
			streak++
			news = fmt.Sprintf("up, %d of %d", streak, w.steady)
		case err != nil && ctx.Err() != nil: // which is why
			return seen, false, async.Again(nil)
		default:
			streak = 0
		}
		if news != said {
			w.tell("%s: %s", t.name, news)
			said = news
		}
		return seen, streak >= w.steady, err
	}, async.Name(t.name), async.Timeout(t.limit)).Await(context.WithoutCancel(ctx), 0)
	o.took = time.Since(begin)
	return o
}
