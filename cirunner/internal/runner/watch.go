//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ambit-go/ambit/async"
)

// watched runs a script under its watchdogs: one that listens, and one that
// looks at a file. beat is to be called when the script has printed something.
// Both abort the same task, which ends when the script has.
func (a *attempt) watched(ctx context.Context, run func(ctx context.Context, beat func()) error) error {
	var opts []async.TaskOption
	if silence := a.job.Watchdog.Silence; silence > 0 {
		opts = append(opts, async.Heartbeat(silence))
	}
	handler := func(ctx context.Context) (struct{}, error) {
		return struct{}{}, run(ctx, func() { async.Beat(ctx) })
	}
	_, err := a.watch(ctx, handler, opts).Wait(context.WithoutCancel(ctx))
	return a.reworded(err)
}

// watch starts the handler, beside a look at the heartbeat file if there is one.
func (a *attempt) watch(ctx context.Context, handler func(context.Context) (struct{}, error), opts []async.TaskOption) *async.Future[struct{}] {
	w := a.job.Watchdog
	if w.Heartbeat == "" || w.HeartbeatWithin <= 0 {
		return async.Execute(ctx, handler, opts...)
	}
	path, begin := filepath.Join(a.dir, w.Heartbeat), time.Now()
	check := func(context.Context) error {
		last := begin
		if info, err := os.Stat(path); err == nil && info.ModTime().After(begin) {
			last = info.ModTime()
		}
		if age := time.Since(last); age > w.HeartbeatWithin {
			return &stuck{fmt.Sprintf("%s was not touched for %v", w.Heartbeat, age.Round(10*time.Millisecond))}
		}
		return nil
	}
	all := make([]async.WatchOption, len(opts))
	for i, o := range opts {
		all[i] = o
	}
	return async.Watch(ctx, handler, async.Every(min(w.HeartbeatWithin/4, time.Second)), check, all...)
}

// stuck is what a watchdog has found.
type stuck struct{ text string }

func (e *stuck) Error() string { return e.text }

// reworded says in our words that nothing was printed.
func (a *attempt) reworded(err error) error {
	if errors.Is(err, async.ErrNoBeat) {
		return errors.Join(&stuck{fmt.Sprintf("it printed nothing for %v", a.job.Watchdog.Silence)}, err)
	}
	return err
}
