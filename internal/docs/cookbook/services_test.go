//go:build !js

package cookbook

import (
	"context"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// reserve returns an address that nobody listens at, nor can by accident until
// it is given up.
func reserve(t *testing.T) (address string, giveUp func()) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	return fmt.Sprint("127.0.0.1:", name.(*syscall.SockaddrInet4).Port), func() { _ = syscall.Close(fd) }
}

// closedAddress returns an address that nobody listens at.
func closedAddress(t *testing.T) string {
	address, giveUp := reserve(t)
	t.Cleanup(giveUp)
	return address
}

// lateService listens at the address that it returns, but only after d.
func lateService(t *testing.T, d time.Duration) string {
	address, giveUp := reserve(t)
	opened := make(chan net.Listener, 1)
	go func() {
		time.Sleep(d)
		giveUp()
		l, _ := net.Listen("tcp", address)
		opened <- l
	}()
	t.Cleanup(func() { require.NoError(t, (<-opened).Close()) })
	return address
}

func TestWaitForAllTellsOfEveryServiceInOrder(t *testing.T) {
	ctx := asynctest.Context(t)
	for late := 150 * time.Millisecond; ; late *= 2 {
		addresses := []string{lateService(t, late), closedAddress(t), lateService(t, 0)}
		results, err := WaitForAll(ctx, addresses, 20*late)
		require.NoError(t, err)
		require.Len(t, results, 3)
		require.NoError(t, results[0].Err)
		require.NoError(t, results[2].Err)

		var poll *async.PollError[int]
		require.ErrorAs(t, results[1].Err, &poll)
		require.Greater(t, poll.Attempts, 1)
		require.ErrorIs(t, results[1].Err, context.DeadlineExceeded)
		require.ErrorContains(t, results[1].Err, "refused")
		if results[0].Value > 1 { // attempts; else the service was there before anybody asked
			return
		}
	}
}

func TestWaitForAllTellsWhatItKnowsWhenItIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		defer cancel(errUser)
		if conn, err := l.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, conn) // until the one who asks has got its answer
			_ = conn.Close()
		}
	}()
	results, _ := WaitForAll(ctx, []string{l.Addr().String(), closedAddress(t)}, time.Minute)
	require.Len(t, results, 2)
	require.NoError(t, results[0].Err)
	require.ErrorIs(t, results[1].Err, errUser)
}

func TestWaitForAnyReturnsTheFirst(t *testing.T) {
	ctx := asynctest.Context(t)
	index, err := WaitForAny(ctx, []string{closedAddress(t), lateService(t, 50*time.Millisecond)}, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 1, index)

	_, err = WaitForAny(ctx, []string{closedAddress(t)}, 100*time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
