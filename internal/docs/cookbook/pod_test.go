package cookbook

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// A server answers the nth request, without a network, so that it can live in
// a bubble.
type server func(n int, w http.ResponseWriter, r *http.Request) error

func (s server) client() *http.Client {
	n := 0
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		n++
		w := httptest.NewRecorder()
		if err := s(n, w, r); err != nil {
			return nil, err
		}
		return w.Result(), nil
	})}
}

type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func phases(phases ...string) server {
	return func(n int, w http.ResponseWriter, _ *http.Request) error {
		switch p := phases[min(n, len(phases))-1]; p {
		case "lost":
			return errors.New("connection lost")
		case "busy":
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		case "none":
			w.WriteHeader(http.StatusNotFound)
		default:
			_, err := w.Write([]byte(`{"phase": "` + p + `", "reason": "because"}`))
			return err
		}
		return nil
	}
}

const apod = "http://cluster/pod"

func TestAPodIsWaitedForThroughPassingErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		start := time.Now()
		pod, err := WaitForRunning(ctx, phases("Pending", "lost", "busy", "Pending", "Running").client(), apod, time.Second, 5*time.Minute)
		require.NoError(t, err)
		require.Equal(t, "Running", pod.Phase)
		took := time.Since(start)
		require.GreaterOrEqual(t, took, time.Minute, "Retry-After")
		require.Less(t, took, 65*time.Second)
	})
}

func TestAPodThatHasEndedEndsTheWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		for _, last := range []string{"Failed", "none"} {
			start := time.Now()
			_, err := WaitForRunning(ctx, phases("Pending", last, "Running").client(), apod, time.Second, 5*time.Minute)
			var poll *async.PollError[Pod]
			require.ErrorAs(t, err, &poll)
			require.Equal(t, 2, poll.Attempts)
			require.Less(t, time.Since(start), 2*time.Second)
		}
	})
}

func TestTheErrorTellsTheLastPhaseAndTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		_, err := WaitForRunning(ctx, phases("Pending", "lost").client(), apod, time.Second, time.Minute)
		var poll *async.PollError[Pod]
		require.ErrorAs(t, err, &poll)
		require.Equal(t, "Pending", poll.Value.Phase)
		require.ErrorContains(t, poll.Err, "connection lost")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestACancelledWaitEndsAtOnceAndTellsTheLastPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(asynctest.Context(t))
		start := time.Now()
		time.AfterFunc(90*time.Second, func() { cancel(errStopped) })
		_, err := WaitForRunning(ctx, phases("Pending").client(), apod, time.Minute, time.Hour)
		require.ErrorIs(t, err, errStopped)
		var poll *async.PollError[Pod]
		require.ErrorAs(t, err, &poll)
		require.Equal(t, "Pending", poll.Value.Phase)
		require.Equal(t, 90*time.Second, time.Since(start))
	})
}

var errStopped = errors.New("stopped")
