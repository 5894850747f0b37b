package record

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// recorded runs body in a bubble, in a scope that r observes, and returns the recording.
func recorded(t *testing.T, r *Recorder, body func(ctx context.Context), opts ...async.ScopeOption) (out *Recording) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		_ = async.Scope(ctx, func(ctx context.Context) error {
			body(ctx)
			synctest.Wait()
			out = r.Recording(async.Snapshot(async.Of(ctx)))
			return errors.New("enough")
		}, append(opts, async.Observe(r), async.OnFailure(func(error) error { return nil }))...)
	})
	return out
}

func (r *Recording) event(name string) *Event {
	for i := range r.Events {
		if r.Events[i].Task == name {
			return &r.Events[i]
		}
	}
	return &Event{}
}

// With Callers each end has the line that has started the task, without it none has.
func TestCallersAreKeptOnRequest(t *testing.T) {
	body := func(ctx context.Context) {
		async.Go(ctx, func(context.Context) error { return nil }, async.Name("one"))
		time.Sleep(time.Second)
	}
	require.Regexp(t, `^record/options_test.go:\d+$`, recorded(t, New(Callers()), body).event("one").Place)
	require.Empty(t, recorded(t, New(), body).event("one").Place)
}

// Waits over a bound are kept, each with what was waited for; shorter ones are not.
func TestWaitsOverABoundAreKept(t *testing.T) {
	body := func(ctx context.Context) {
		slow := async.Start(ctx, func(ctx context.Context) error { time.Sleep(2 * time.Second); return nil }, async.Name("slow"))
		async.Go(ctx, func(ctx context.Context) error { _, err := slow.Wait(ctx); return err }, async.Name("waits"))
		async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, 50*time.Millisecond) }, async.Name("naps"))
		time.Sleep(time.Minute)
	}
	all := recorded(t, New(), body)
	require.Len(t, all.Waits, 2)
	require.Equal(t, "naps", all.Waits[0].Task)
	w := all.Waits[1]
	require.Equal(t, Wait{ID: all.event("waits").ID, Task: "waits", How: "await", On: all.event("slow").ID, What: "slow", Ended: w.Ended, Took: 2 * time.Second}, w)
	require.Len(t, recorded(t, New(WaitsOver(time.Second)), body).Waits, 1)
	require.Panics(t, func() { WaitsOver(time.Millisecond - 1) })
}

// Among tasks without a name that have ended well, and have started and awaited nothing, one in so many is kept; the others are counted.
func TestUnnamedLeavesAreSampled(t *testing.T) {
	all := recorded(t, New(Sample(10)), func(ctx context.Context) {
		for i := range 400 {
			async.Go(ctx, func(context.Context) error {
				if i%100 == 0 {
					return errPlanted
				}
				return nil
			})
			async.Go(ctx, func(context.Context) error { return nil }, async.Name("named"))
		}
		time.Sleep(time.Second)
	})
	named, good, failed := 0, 0, 0
	for _, e := range all.Events {
		switch {
		case e.Task == "named":
			named++
		case e.Outcome == "ok":
			good++
		default:
			failed++
		}
	}
	require.Equal(t, 400, named)
	require.Equal(t, 4, failed)
	require.InDelta(t, 40, good, shards)
	require.EqualValues(t, 396-good, all.Spared)
	require.Panics(t, func() { Sample(0) })
}

// A task that has not ended is taken from a picture, with when it began; one that was cancelled in a queue is there, too.
func TestARecordingHasWhatLivesAndWhatWasSkipped(t *testing.T) {
	began := time.Time{}
	all := recorded(t, New(), func(ctx context.Context) {
		began = time.Now()
		async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, async.Name("lives"))
		synctest.Wait()
		never := async.Start(ctx, func(context.Context) error { return nil }, async.Name("never"))
		async.Start(ctx, func(context.Context) error { return nil }, async.Name("queues"))
		time.Sleep(time.Second)
		never.Cancel(errPlanted)
		time.Sleep(time.Second)
	}, async.Limit(1))
	live := make(map[string]Live)
	for _, l := range all.Live {
		live[l.Task] = l
	}
	require.True(t, began.Equal(live["lives"].Begun), live)
	require.EqualValues(t, "limit", live["queues"].How)
	require.Zero(t, live["queues"].Begun)
	require.EqualValues(t, "queued", live["queues"].State)
	never := all.event("never")
	require.Equal(t, "skipped", never.Outcome)
	require.Equal(t, time.Second, never.Queued)
	require.Empty(t, all.Failures)
	require.NotContains(t, live, "never")
}

// The page has the time line in it, needs nothing else, and is read as the recording that it was made of.
func TestAPageOfARecordingIsReadAgain(t *testing.T) {
	all := recorded(t, New(Callers()), func(ctx context.Context) {
		async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return errPlanted }, async.Name("<script>fails"))
		async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }, async.Name("lives"))
		time.Sleep(2 * time.Second)
	})
	var page, again bytes.Buffer
	require.NoError(t, all.WriteHTML(&page))
	text := page.String()
	require.NotContains(t, text, "<script>fails")
	require.Regexp(t, `&lt;script&gt;fails</bdi> <small>#\d+\.\d+</small>.*✗</span> 1s error`, text)
	require.Regexp(t, `<bdi>lives</bdi>.*▸</span> 2s waits`, text)
	require.Contains(t, text, "began 2s ago; sleeps.")
	require.NotRegexp(t, `(src|href)="http`, text)
	var first bytes.Buffer
	require.NoError(t, all.Save(&first))
	want, err := Open(&first)
	require.NoError(t, err)
	read, err := Open(strings.NewReader(text))
	require.NoError(t, err)
	require.Equal(t, want, read)
	require.NoError(t, read.WriteHTML(&again))
	require.Equal(t, text, again.String())
	for _, broken := range []string{
		text[:len(text)/2], "<!doctype html>", strings.Replace(text, `id="recording">`, `id="recording">-`, 1),
		regexp.MustCompile(`id="recording">[^<]*`).ReplaceAllString(text, `id="recording">`),
	} {
		_, err := Open(strings.NewReader(broken))
		require.Error(t, err)
	}
	require.ErrorIs(t, all.WriteHTML(broken{}), errPlanted)
}
