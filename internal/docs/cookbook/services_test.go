package cookbook

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// closedAddress returns an address that nobody listens at.
func closedAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// lateService listens at the address that it returns, but only after d.
func lateService(t *testing.T, d time.Duration) string {
	address := closedAddress(t)
	opened := make(chan net.Listener, 1)
	go func() {
		time.Sleep(d)
		l, _ := net.Listen("tcp", address)
		opened <- l
	}()
	t.Cleanup(func() { require.NoError(t, (<-opened).Close()) })
	return address
}

func TestWaitForAllTellsOfEveryServiceInOrder(t *testing.T) {
	ctx := asynctest.Context(t)
	addresses := []string{lateService(t, 150*time.Millisecond), closedAddress(t), lateService(t, 0)}
	results, err := WaitForAll(ctx, addresses, time.Second)
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
}

func TestWaitForAllTellsWhatItKnowsWhenItIsCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(asynctest.Context(t), 200*time.Millisecond)
	defer cancel()
	results, _ := WaitForAll(ctx, []string{lateService(t, 0), closedAddress(t)}, time.Minute)
	require.Len(t, results, 2)
	require.NoError(t, results[0].Err)
	require.ErrorIs(t, results[1].Err, context.DeadlineExceeded)
}

func TestWaitForAnyReturnsTheFirst(t *testing.T) {
	ctx := asynctest.Context(t)
	index, err := WaitForAny(ctx, []string{closedAddress(t), lateService(t, 50*time.Millisecond)}, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 1, index)

	_, err = WaitForAny(ctx, []string{closedAddress(t)}, 100*time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
