package service_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

// A fullPool has some places. Whoever finds none waits for one.
type fullPool chan struct{}

func (p fullPool) Execute(task func()) error {
	p <- struct{}{}
	go func() {
		defer func() { <-p }()
		task()
	}()
	return nil
}

// A pool that has no place holds nobody up: a stop is heard, and ends the wait for the place.
func TestAnExecutorWithoutAPlaceDoesNotHoldUpAStop(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		begun, pool, d := time.Now(), make(fullPool, 1), newDiary()
		pool <- struct{}{}
		time.AfterFunc(time.Second, func() { stop(errStop) })
		time.AfterFunc(time.Hour, func() { <-pool })
		require.NoError(t, service.Run(ctx, []service.Service{d.worker("other", time.Second), {
			Name: "worker", Run: func(context.Context) error { t.Error("it was run"); return nil }, Options: []async.TaskOption{async.On(pool)},
		}}))
		assert.Equal(t, []string{"other runs", "other drains", "other ends"}, d.read())
		assert.Equal(t, 2*time.Second, time.Since(begun))
		time.Sleep(time.Hour)
	})
}

// A service that is run once more at a stop, to be drained, may have to wait for its place, and is drained when it has one.
func TestAServiceThatIsRunAgainAtAStopWaitsForItsPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		grace, giveUp time.Duration
		text          string
	}{
		"in time": {time.Hour, time.Hour, ""},
		"too late": {10 * time.Second, time.Hour, "service: the drain was cut short: async: services: context deadline exceeded (limit 10s, waited 10s); " +
			"it was for: told to stop; still draining: service worker for 10s (Run: queued)"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				begun, pool, runs, quit := time.Now(), make(fullPool, 1), 0, make(chan struct{})
				s := service.Service{Name: "worker", Options: append(restarts(0), async.On(pool)), Drain: func(context.Context) error { close(quit); return nil }}
				s.Run = func(ctx context.Context) error {
					if runs++; runs > 1 {
						return until(ctx, quit)
					}
					go func() { pool <- struct{}{} }() // somebody else waits for the place
					return errPlanted
				}
				time.AfterFunc(time.Second, func() { stop(errStop) })
				time.AfterFunc(time.Minute, func() { <-pool })
				var log bytes.Buffer
				err := service.Run(ctx, []service.Service{s}, service.Grace(tc.grace), service.GiveUp(tc.giveUp), service.Log(slog.New(slog.NewTextHandler(&log, nil))))
				assert.Equal(t, 1, strings.Count(log.String(), "planted"), "it is told why it has to be run again")
				if tc.text != "" {
					require.EqualError(t, err, tc.text)
					assert.Equal(t, 11*time.Second, time.Since(begun))
					assert.Equal(t, 1, runs)
					time.Sleep(time.Hour)
					return
				}
				assert.Equal(t, time.Minute, time.Since(begun))
				require.NoError(t, err)
				assert.Equal(t, 2, runs)
			})
		})
	}
}

// A pool that refuses what is to be run once more leaves something undone, which is told.
func TestAServiceThatIsNotRunAgainBecauseItsExecutorRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		begun, calls := time.Now(), 0
		pool := refuser(func() bool { calls++; return calls > 1 })
		s := service.Service{Name: "worker", Options: append(restarts(0), async.On(pool)), Drain: func(context.Context) error { return nil }}
		s.Run = func(context.Context) error { return errPlanted }
		time.AfterFunc(time.Second, func() { stop(errStop) })
		var log bytes.Buffer
		err := service.Run(ctx, []service.Service{s}, service.Log(slog.New(slog.NewTextHandler(&log, nil))))
		require.ErrorAs(t, err, new(*async.RejectedError))
		assert.Equal(t, 1, strings.Count(log.String(), "err=planted"), "it is told why it has to be run again")
		assert.ErrorContains(t, err, "service worker: ")
		assert.Equal(t, time.Second, time.Since(begun))
	})
}

type refuser func() (refuse bool)

func (r refuser) Execute(task func()) error {
	if r() {
		return errPlanted
	}
	go task()
	return nil
}

// A panic of Start, as with an option that does not apply, is a panic of Run, on its goroutine.
func TestAnOptionThatDoesNotApplyPanicsInRun(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		require.Panics(t, func() {
			_ = service.Run(ctx, []service.Service{{Run: await, Options: []async.TaskOption{async.OnDiscard(func(string) {})}}})
		})
	})
}

// Under a Limit that has no place for it a Drain waits for one. The error says so.
func TestADrainThatFindsNoPlaceUnderALimit(t *testing.T) {
	for name, tc := range map[string]struct {
		limit int
		text  string
	}{
		"one too few": {1, "(Run, Drain: queued)"}, "enough": {2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				runs, quit := 0, make(chan struct{})
				s := service.Service{Name: "worker", Options: restarts(0), Drain: func(context.Context) error { close(quit); return nil }}
				s.Run = func(ctx context.Context) error {
					if runs++; runs > 1 {
						return until(ctx, quit)
					}
					return errPlanted
				}
				time.AfterFunc(time.Second, func() { stop(errStop) })
				_ = async.Scope(ctx, func(ctx context.Context) error {
					err := service.Run(ctx, []service.Service{s}, service.Log(nil))
					if tc.text == "" {
						require.NoError(t, err)
						assert.Equal(t, 2, runs, "it is run again, and drained")
					} else {
						require.ErrorContains(t, err, tc.text)
					}
					return nil
				}, async.Limit(tc.limit))
			})
		})
	}
}
