package cookbook

import (
	"context"
	"io"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Session runs one command on another machine. *ssh.Session of
// golang.org/x/crypto/ssh is one, with S = ssh.Signal.
type Session[S ~string] interface {
	Run(command string) error // returns when the command or the connection has ended
	Signal(signal S) error
}

// RunRemote runs command in s. If it takes longer than limit, or when ctx is
// done, the command gets TERM, after a stage KILL, and after another stage conn
// is closed. RunRemote then waits one stage more.
func RunRemote[S ~string](
	ctx context.Context, conn io.Closer, s Session[S], command string, limit, stage time.Duration,
) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ended := make(chan struct{})
	run := async.Start(ctx, func(context.Context) error {
		defer close(ended)
		return s.Run(command)
	},
		async.Name(command),
		async.OnAbort(func(ctx context.Context, _ error) error {
			for _, signal := range []S{"TERM", "KILL"} {
				async.Go(ctx, func(context.Context) error { // beside us: it blocks if the server does not read
					_ = s.Signal(signal) // the outcome of Run says whether it helped
					return nil
				})
				select {
				case <-ended:
					return nil
				case <-time.After(stage):
				}
			}
			return conn.Close()
		}),
		async.HookTimeout(3*stage),
		async.Grace(3*stage))
	_, err := run.Await(ctx, limit)
	return err
}
