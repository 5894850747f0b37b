package cookbook

import (
	"context"
	"io"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Conn is what a process is attached by, such as a *net.UnixConn.
type Conn interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Attach copies stdin to conn and conn to stdout until conn has nothing more
// to say. The end of stdin ends nothing; an error of either copy ends both.
// Unless the output has come to its end, stop is called, with 10 s and a
// context that is not cancelled. When Attach returns, nothing reads or writes;
// it may have closed conn and stdin.
func Attach(
	ctx context.Context, conn Conn, stdin io.ReadCloser, stdout io.Writer, stop func(context.Context) error,
) error {
	const output = 0
	decides := func(r async.Result[int64]) bool { return r.Index == output || r.Err != nil }

	return async.Scope(ctx, func(ctx context.Context) error {
		async.OnExit(ctx, func(ctx context.Context, outcome error) error {
			if outcome == nil {
				return nil
			}
			return stop(ctx)
		})
		_, err := async.Until(ctx, decides,
			copying(stdout, conn, conn),
			func(ctx context.Context) (int64, error) {
				n, err := copying(conn, stdin, stdin, conn)(ctx)
				if err == nil {
					_ = conn.CloseWrite() // tell the process that there is no more
				}
				return n, err
			},
		).Await(ctx, 0)
		return err
	}, async.HookTimeout(10*time.Second))
}

// copying returns a task that copies. Reads and writes look at no context, so
// when the task is cancelled what they block on is closed.
func copying(dst io.Writer, src io.Reader, blocks ...io.Closer) func(context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		release := context.AfterFunc(ctx, func() {
			for _, c := range blocks {
				_ = c.Close()
			}
		})
		defer release()
		return io.Copy(dst, src)
	}
}
