package cookbook

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// answers returns a phase function that gives one answer after the other and
// then the last again and again.
func answers(all ...string) (phase func(context.Context) (string, error), asked *int) {
	asked = new(int)
	return func(context.Context) (string, error) {
		*asked++
		if p := all[min(*asked, len(all))-1]; p != "" {
			return p, nil
		}
		return "", errNoAnswer
	}, asked
}

var errNoAnswer = errors.New("no answer")

func TestTwoMissingAnswersAreTolerated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		phase, asked := answers("Running", "", "", "Running", "", "", "Running")
		err := RunInPod(ctx, func(ctx context.Context) error {
			return async.Sleep(ctx, 10500*time.Millisecond)
		}, time.Second, phase, func(context.Context, error) error { panic("not needed") })
		require.NoError(t, err)
		require.Equal(t, 10, *asked)
		synctest.Wait()
		require.Equal(t, 10, *asked, "no check after the end")
	})
}

func TestAPodThatIsGoneAbortsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		phase, _ := answers("Running", "Failed")
		start := time.Now()
		killed := make(chan error, 1)
		errExit := errors.New("exit 137")
		err := RunInPod(ctx, func(ctx context.Context) error {
			cause := <-killed // does not look at its context
			require.Equal(t, context.Cause(ctx), cause)
			return errExit
		}, time.Second, phase, func(ctx context.Context, cause error) error {
			require.NoError(t, ctx.Err())
			killed <- cause
			return nil
		})
		var dog *async.WatchdogError
		require.ErrorAs(t, err, &dog)
		require.ErrorContains(t, dog, "pod is Failed")
		require.ErrorIs(t, err, errExit)
		require.Equal(t, 4*time.Second, time.Since(start))
	})
}

func TestAnAnswerThatDoesNotComeIsABadOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		silent := func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		err := RunInPod(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) },
			time.Second, silent, func(context.Context, error) error { return nil })
		var dog *async.WatchdogError
		require.ErrorAs(t, err, &dog)
	})
}

func TestACancelledRunIsKilledWithTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(asynctest.Context(t))
		time.AfterFunc(90*time.Second, func() { cancel(errStopped) })
		phase, _ := answers("Running")
		killed := make(chan error, 1)
		err := RunInPod(ctx, func(context.Context) error { return <-killed }, time.Second, phase,
			func(_ context.Context, cause error) error { killed <- cause; return nil })
		require.ErrorIs(t, err, errStopped)
		var dog *async.WatchdogError
		require.False(t, errors.As(err, &dog))
	})
}
