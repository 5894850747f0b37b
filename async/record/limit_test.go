package record

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// An entering observer gives each task a value.
type entering struct{}

func (*entering) Enter(ctx context.Context, e async.Event) context.Context {
	return context.WithValue(ctx, entering{}, e.Task)
}

func (*entering) Observe(async.Event) {}

// Under a Limit each recorder is told the same of each task, whoever else observes: how long it queued, ran and waited, and who
// was cancelled before it had a slot.
func TestRecordersUnderALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorders := map[string]*Recorder{"outer": New(), "inner": New(), "with callers": New(Callers()), "of all scopes": New()}
		observe := func(name string) async.ScopeOption { return async.Observe(recorders[name]) }
		began := time.Now()
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				return async.Scope(ctx, runSix, observe("inner"), observe("of all scopes"), async.Limit(2), async.Profile(), async.Name("innermost"))
			}, async.Observe(new(entering)), observe("with callers"), observe("of all scopes"), async.Name("middle"))
		}, observe("outer"), observe("of all scopes"), async.Observe(Log(slog.New(slog.NewTextHandler(io.Discard, nil)))), async.Limit(3)))
		for name, r := range recorders {
			all := r.Recording(nil)
			told := make(map[string]string)
			for _, e := range all.Events {
				require.NotContains(t, told, e.Task, "it is told once")
				told[e.Task] = fmt.Sprint(e.Outcome, ", queued ", e.Queued, ", took ", e.Took, ", ended ", e.Ended.Sub(began))
			}
			delete(told, "middle")
			delete(told, "innermost")
			require.Equal(t, map[string]string{
				"task 1": "ok, queued 0s, took 1s, ended 1s",
				"child":  "ok, queued 0s, took 1s, ended 1s", // in the slot that its owner lends
				"task 0": "ok, queued 0s, took 1s, ended 1s", // it has its slot back before anything new is started
				"task 2": "ok, queued 1s, took 1s, ended 2s",
				"task 3": "ok, queued 1s, took 1s, ended 2s",
				"task 4": "ok, queued 2s, took 1s, ended 3s",
				"task 5": "skipped, queued 1.5s, took 0s, ended 1.5s",
			}, told, name)
			require.Len(t, all.Waits, 1, name)
			require.Equal(t, "child", all.Waits[0].What)
			require.Equal(t, time.Second, all.Waits[0].Took)
			require.Empty(t, all.Failures)
		}
	})
}

// runSix starts tasks that take a second each. One waits for a child, and the last is cancelled while it queues.
func runSix(ctx context.Context) error {
	second := func(context.Context) error { time.Sleep(time.Second); return nil }
	var last *async.Future[struct{}]
	for i := range 6 {
		last = async.Start(ctx, func(ctx context.Context) error {
			if i > 0 {
				return second(ctx)
			}
			_, err := async.Start(ctx, second, async.Name("child")).Await(ctx, 0)
			return err
		}, async.Name(fmt.Sprint("task ", i)))
	}
	time.Sleep(1500 * time.Millisecond)
	last.Cancel(errPlanted)
	return nil
}
