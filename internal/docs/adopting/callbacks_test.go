package adopting

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asynctest"
)

func TestACallbackAfterTheEndBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var callback func(string)
		stopped := false
		var got []string
		err := Follow(asynctest.Context(t), func(f func(string)) func() {
			callback = f
			go func() {
				f("one")
				f("two")
				f("three")
			}()
			return func() { stopped = true }
		}, func(_ context.Context, message string) error {
			got = append(got, message)
			if message == "two" {
				return errTest
			}
			return nil
		})
		require.ErrorIs(t, err, errTest)
		require.True(t, stopped)
		require.Equal(t, []string{"one", "two"}, got)
		callback("four")
		callback("five")
	})
}

func TestFollowEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	cancel(errTest)
	err := Follow(ctx, func(func(string)) func() { return func() {} }, nil)
	require.ErrorIs(t, err, errTest)
}

func TestAnAnswerByACallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		answer, err := Ask(ctx, func(answered func(string, error)) { go answered("yes", nil) })
		require.NoError(t, err)
		require.Equal(t, "yes", answer)

		_, err = Ask(ctx, func(answered func(string, error)) { answered("", errTest) })
		require.ErrorIs(t, err, errTest)

		_, err = Ask(ctx, func(answered func(string, error)) {
			time.AfterFunc(time.Hour, func() { answered("late", nil) })
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(2 * time.Hour)
	})
}
