//go:build !js

package cookbook

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// The addresses are real, and the time is not: that of a bubble stands still while somebody dials.

// lateService returns an address of which nobody else can have the port. Somebody listens at it after d; nobody, if d
// is negative.
func lateService(t *testing.T, d time.Duration) string {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	opened := make(chan error, 1)
	go func() {
		if time.Sleep(d); d >= 0 {
			err = syscall.Listen(fd, 10)
		}
		opened <- err
	}()
	t.Cleanup(func() {
		require.NoError(t, <-opened)
		require.NoError(t, syscall.Close(fd))
	})
	return fmt.Sprint("127.0.0.1:", name.(*syscall.SockaddrInet4).Port)
}

const never = time.Duration(-1)

func TestWaitForAllTellsOfEveryServiceInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addresses := []string{lateService(t, 150*time.Millisecond), lateService(t, never), lateService(t, 0)}
		results, err := WaitForAll(asynctest.Context(t), addresses, time.Second)
		require.NoError(t, err)
		require.Len(t, results, 3)
		require.NoError(t, results[0].Err)
		require.Greater(t, results[0].Value, 1, "attempts")
		require.NoError(t, results[2].Err)

		var poll *async.PollError[int]
		require.ErrorAs(t, results[1].Err, &poll)
		require.Greater(t, poll.Attempts, 1)
		require.ErrorIs(t, results[1].Err, context.DeadlineExceeded)
		require.ErrorContains(t, results[1].Err, "refused")
	})
}

func TestWaitForAllTellsWhatItKnowsWhenItIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(asynctest.Context(t), 200*time.Millisecond)
		defer cancel()
		results, _ := WaitForAll(ctx, []string{lateService(t, 0), lateService(t, never)}, time.Minute)
		require.Len(t, results, 2)
		require.NoError(t, results[0].Err)
		require.ErrorIs(t, results[1].Err, context.DeadlineExceeded)
	})
}

func TestWaitForAnyReturnsTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		index, err := WaitForAny(ctx, []string{lateService(t, never), lateService(t, 50*time.Millisecond)}, time.Minute)
		require.NoError(t, err)
		require.Equal(t, 1, index)

		_, err = WaitForAny(ctx, []string{lateService(t, never)}, 100*time.Millisecond)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
