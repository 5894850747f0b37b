package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// exits runs a program in a bubble, and returns when it has ended and what it has written
// to its standard error.
func exits(t *testing.T, run func(context.Context) error, opts ...Option) (after time.Duration, said string) {
	t.Helper()
	stderr, err := os.Create(t.TempDir() + "/stderr")
	require.NoError(t, err)
	before := os.Stderr
	os.Stderr = stderr
	defer func() { os.Stderr = before; assert.NoError(t, stderr.Close()) }()
	synctest.Test(t, func(t *testing.T) {
		root, _ := asynctest.Root(t.Context())
		p := newProgramInBubble(opts)
		p.ctx, p.cancel = context.WithCancelCause(context.WithValue(root, programKey{}, p))
		begun := time.Now()
		p.exit = func(int) { after = time.Since(begun) }
		p.main(run)
		time.Sleep(24 * time.Hour) // exit does not end those who are left here
	})
	text, err := os.ReadFile(stderr.Name())
	require.NoError(t, err)
	return after, string(text)
}

// deaf runs for an hour, whatever it is told.
func deaf(name string) Service {
	return Service{Name: name, Run: func(context.Context) error { time.Sleep(time.Hour); return nil }}
}

// failing ends the Run that it is in after a second.
var failing = Service{Name: "bad", Run: func(context.Context) error {
	time.Sleep(time.Second)
	return errors.New("root cause")
}}

// quick gives up two seconds later.
var quick = []Option{Grace(time.Second), GiveUp(time.Second)}

// Main waits for detached tasks; who has not ended by the end of GiveUp has had the time
// that there is, and is not waited for a second time.
func TestMainDoesNotWaitForWhatARunHasGivenUp(t *testing.T) {
	for name, tc := range map[string]struct {
		run  func(ctx context.Context) error
		opts []Option
	}{
		"one": {run: func(ctx context.Context) error { return Run(ctx, []Service{deaf("deaf"), failing}, quick...) }},
		"forever": {run: func(ctx context.Context) error { return Run(ctx, []Service{deaf("deaf"), failing}, quick...) },
			opts: []Option{Grace(Forever)}},
		"with a Run in it that has not given up": {run: func(ctx context.Context) error {
			return Run(ctx, []Service{deaf("outer"), {Name: "nest", Run: func(ctx context.Context) error {
				return Run(ctx, []Service{deaf("inner")}, Grace(time.Second), GiveUp(4*time.Second))
			}}, failing}, quick...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var audited error
			for _, audit := range []time.Duration{0, 5 * time.Second} {
				after, said := exits(t, func(ctx context.Context) error {
					async.Detach(ctx, "audit", func(ctx context.Context) error { audited = async.Sleep(ctx, audit); return audited })
					return tc.run(ctx)
				}, tc.opts...)
				assert.NoError(t, audited, "a detached task has its grace")
				assert.Equal(t, max(3*time.Second, audit)+100*time.Millisecond, after, "the 100 ms are those of Shutdown")
				assert.Contains(t, said, "service bad: root cause")
				assert.NotContains(t, said, "shutting down", "who is left is named once")
			}
		})
	}
}

// A Run that ended an hour ago has used up nothing of the Grace of the end.
func TestTheGraceOfTheEndIsNotThatOfAnEarlierRun(t *testing.T) {
	var audited error
	exits(t, func(ctx context.Context) error {
		if err := Run(ctx, []Service{{Name: "migrate", MayEnd: true, Run: func(context.Context) error { return nil }}}); err != nil {
			return err
		}
		time.Sleep(time.Hour)
		async.Detach(ctx, "audit", func(ctx context.Context) error {
			audited = async.Sleep(ctx, 5*time.Second)
			return audited
		})
		return nil
	})
	assert.NoError(t, audited)
}

// Runs that fail one after another are not why the program ends, and do not pile up.
func TestFailuresOfRunsOneAfterAnotherDoNotPileUp(t *testing.T) {
	kept := 0
	exits(t, func(ctx context.Context) error {
		for i := range 500 {
			_ = Run(ctx, []Service{{Name: "reloaded", Run: func(context.Context) error { return fmt.Errorf("failure %d", i) }}})
		}
		p := programOf(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		kept = len(p.noted)
		return nil
	})
	assert.LessOrEqual(t, kept, maxRemarks)
}

// Services of many Runs had something to say when they were told to stop: the newest of it is told.
func TestTheNewestRemarksAreTold(t *testing.T) {
	order := func(ctx context.Context, says string) error {
		return Run(ctx, []Service{
			{Name: "writer", Run: func(ctx context.Context) error {
				<-ctx.Done()
				return fmt.Errorf("%s: %w", says, ctx.Err())
			}},
			{Name: "reader", Run: func(context.Context) error { time.Sleep(time.Second); return nil }},
		})
	}
	_, said := exits(t, func(ctx context.Context) error {
		for i := range 40 {
			if err := order(ctx, fmt.Sprintf("order %d has no note", i)); err != nil {
				return err
			}
		}
		return order(ctx, "12 rows were not written")
	})
	assert.Contains(t, said, "12 rows were not written")
	assert.Contains(t, said, "and 9 more")
}
