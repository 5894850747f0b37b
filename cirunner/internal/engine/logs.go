//go:build unix

package engine

import (
	"context"
	"errors"
	"io"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/proc"
)

// Logs writes what the container says to out, until the container has ended. At the end of ctx the container is
// killed, and not the client that follows it, so that nothing is lost which the container has said before.
func (c *Container) Logs(ctx context.Context, out io.Writer) (err error) {
	scopeErr := async.Scope(context.WithoutCancel(ctx), func(scope context.Context) error {
		finished, finish := context.WithCancel(scope)
		defer finish()
		client, end := context.WithCancelCause(scope)
		defer end(nil)
		async.Go(scope, func(scope context.Context) error { c.endLogs(ctx, scope, finished, end); return nil })
		_, err = proc.Run(client, proc.Command{Args: c.args("logs", "--follow", c.Name), Name: "logs", Stdout: out, Stderr: out, Grace: -1, Linger: -1})
		return nil
	})
	if err == nil {
		err = scopeErr
	}
	return err
}

// endLogs waits for the end of ctx, and kills the container then. finished is done when the client has ended; end
// ends the client.
func (c *Container) endLogs(ctx, scope, finished context.Context, end context.CancelCauseFunc) {
	select {
	case <-finished.Done():
		return
	case <-ctx.Done():
	}
	patient, cancel := context.WithTimeout(scope, giveUp)
	defer cancel()
	_, _ = c.ask(patient, "kill", "--signal", "KILL", c.Name) // it fails if the container has ended
	select {
	case <-finished.Done():
	case <-patient.Done():
		end(errors.New("the client that follows the container has not ended"))
	}
}
