package cookbook

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asynctest"
)

// attached connects Attach with a process, which gets the other end.
func attached(t *testing.T, ctx context.Context, stdin io.ReadCloser, process func(conn *net.TCPConn)) (output string, stopped bool, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := l.Accept()
		if err == nil {
			process(conn.(*net.TCPConn))
			_ = conn.Close()
		}
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	var out strings.Builder
	err = Attach(ctx, conn.(*net.TCPConn), stdin, &out, func(ctx context.Context) error {
		stopped = true
		return ctx.Err()
	})
	_ = conn.Close()
	<-ended
	return out.String(), stopped, err
}

func TestTheEndOfStdinDoesNotEndTheProcess(t *testing.T) {
	ctx := asynctest.Context(t)
	stdin := io.NopCloser(strings.NewReader("question"))
	output, stopped, err := attached(t, ctx, stdin, func(conn *net.TCPConn) {
		question, _ := io.ReadAll(conn) // until the half-close
		_, _ = io.WriteString(conn, "answer to "+string(question))
	})
	require.NoError(t, err)
	require.False(t, stopped)
	require.Equal(t, "answer to question", output)
}

func TestTheEndOfTheOutputEndsAStdinThatWaits(t *testing.T) {
	stdin, _ := io.Pipe()
	output, stopped, err := attached(t, asynctest.Context(t), stdin, func(conn *net.TCPConn) {
		_, _ = io.WriteString(conn, "bye")
	})
	require.NoError(t, err)
	require.False(t, stopped)
	require.Equal(t, "bye", output)
}

func TestABrokenStdinStopsTheProcess(t *testing.T) {
	errBroken := errors.New("broken")
	stdin, keyboard := io.Pipe()
	_ = keyboard.CloseWithError(errBroken)
	_, stopped, err := attached(t, asynctest.Context(t), stdin, func(conn *net.TCPConn) { _, _ = io.Copy(io.Discard, conn) })
	require.ErrorIs(t, err, errBroken)
	require.True(t, stopped)
}

func TestACancelledAttachStopsTheProcess(t *testing.T) {
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	stdin, _ := io.Pipe()
	_, stopped, err := attached(t, ctx, stdin, func(conn *net.TCPConn) {
		cancel(errStopped)
		_, _ = io.Copy(io.Discard, conn)
	})
	require.ErrorIs(t, err, errStopped)
	require.True(t, stopped)
}
