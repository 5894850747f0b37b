package locks_test

import (
	"context"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

func TestMetricsCountWhatHappens(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		metrics := locks.NewMetrics("")
		m := w.manager(w.store, locks.Observe(metrics.Observe))
		require.NoError(t, m.With(t.Context(), "k", func(ctx context.Context) error { return async.Sleep(ctx, time.Minute) }))
		free := held(t, w, "k")
		_, err := m.TryWith(t.Context(), "k", nothing)
		require.NoError(t, err)
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return m.With(ctx, "k", nothing) })
			time.Sleep(200 * time.Millisecond)
			free()
			return nil
		}))
		require.Error(t, m.With(t.Context(), "k", func(ctx context.Context) error {
			require.NoError(t, steal(w, ctx))
			<-ctx.Done()
			return nil
		}))
		mine, err := m.Acquire(t.Context(), "mine")
		require.NoError(t, err)
		fail(w, lockstest.Acquire, lockstest.Fault{Fail: lockstest.ErrFault})
		_, err = m.TryWith(t.Context(), "other", nothing)
		require.Error(t, err)

		synctest.Wait() // a loss is told by the task that has found it
		answer := httptest.NewRecorder()
		metrics.ServeHTTP(answer, nil)
		text := answer.Body.String()
		for _, line := range []string{
			`locks_requests_total{method="acquire",status="ok"} 4`,
			`locks_requests_total{method="acquire",status="not_granted"} 1`,
			`locks_requests_total{method="acquire",status="unavailable"} 1`,
			`locks_requests_total{method="release",status="ok"} 2`,
			`locks_requests_duration_seconds_total{method="acquire",status="ok"} 0.2`,
			`locks_lost_total{reason="stolen"} 1`,
			`locks_lost_total{reason="expired"} 0`,
			`locks_held 1`,
		} {
			assert.Contains(t, text, line)
		}
		// One has to wait; another may find the waitlist of the key, which is about to end.
		assert.Regexp(t, regexp.MustCompile(`(?m)^locks_acquire_retry_wait_total [1-4]$`), text)
		assert.Regexp(t, regexp.MustCompile(`locks_requests_total\{method="renew",status="ok"\} \d+`), text)
		for line := range strings.Lines(text) {
			assert.Regexp(t, regexp.MustCompile(`^\w+(\{[^{}]*\})? [0-9.e+-]+\n$`), line)
		}
		require.NoError(t, mine.Release(t.Context()))
		synctest.Wait()
		answer = httptest.NewRecorder()
		metrics.ServeHTTP(answer, nil)
		assert.Contains(t, answer.Body.String(), "locks_held 0")
	})
}

func TestObserversAreToldWithNoLockHeld(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var m *locks.Manager
		var seen []locks.EventKind
		m = w.manager(w.store, locks.Observe(func(e locks.Event) {
			if seen = append(seen, e.Kind); e.Key == "k" {
				require.NoError(t, m.With(t.Context(), "another", nothing))
			}
		}))
		require.NoError(t, m.With(t.Context(), "k", nothing))
		assert.Equal(t, locks.EventGranted, seen[0])
		w.mustFree("another")
	})
}
