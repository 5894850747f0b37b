//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

// An attachment is a container, and what it is attached to.
type attachment struct {
	engine         *engine
	container      string
	stdin          io.ReadCloser
	stdout, stderr io.Writer
	grace, kill    time.Duration
}

// run is attached until the container ends, and returns how it has ended. The end of ctx stops the container, in
// stages; an error then holds why, and how it has ended.
func (a *attachment) run(ctx context.Context) error {
	conn, err := a.engine.attach(ctx, a.container)
	if err != nil {
		return &lostError{err}
	}
	defer conn.Close()
	hurry := service.Hurry(ctx)
	ended := make(chan struct{}) // closed when the output has come to its end
	_, err = async.Execute(ctx, func(ctx context.Context) (struct{}, error) {
		defer close(ended)
		// The hook stops the container: the output is read to its end all the same.
		return struct{}{}, a.copy(context.WithoutCancel(ctx), conn)
	}, async.Name("attached"), async.OnAbort(func(hook context.Context, why error) error {
		a.stop(hook, hurry, why, conn, ended)
		return nil
	}), async.HookTimeout(2*(a.grace+a.kill))).Join(ctx)
	if err == nil {
		err = a.ended(context.WithoutCancel(ctx))
	}
	if why := context.Cause(ctx); why != nil {
		return fmt.Errorf("%w; %w", why, err)
	}
	return err
}

// copy copies stdin to the container and its output here. The two race, but unevenly: the end of the output is the
// end; the end of stdin is not, or "echo word | attach" would lose all that the container has to say about it. An
// error of either is the end. Race cancels the loser, and what it blocks on is closed then.
func (a *attachment) copy(ctx context.Context, conn *conn) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		_, err := async.Race(ctx,
			func(ctx context.Context) (struct{}, error) {
				defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
				return struct{}{}, conn.output(a.stdout, a.stderr)
			},
			func(ctx context.Context) (struct{}, error) {
				defer context.AfterFunc(ctx, func() { _ = a.stdin.Close() })()
				if _, err := io.Copy(conn, a.stdin); err != nil {
					return struct{}{}, err
				}
				if err := conn.CloseWrite(); err != nil { // there is no more: cat ends at this
					return struct{}{}, err
				}
				<-ctx.Done() // no end of the race: the output decides
				return struct{}{}, nil
			},
		).Await(ctx, 0)
		return err
	}, async.Name("copy"))
}

// stop stops the container: TERM, KILL, the end of the connection. Each stage has its time, and the first that helps is
// the last; hurry, the second signal, ends the first.
func (a *attachment) stop(hook, hurry context.Context, why error, conn *conn, ended <-chan struct{}) {
	stages := []struct {
		signal string
		within time.Duration
		hurry  <-chan struct{}
	}{{"TERM", a.grace, hurry.Done()}, {"KILL", a.kill, nil}}
	for _, stage := range stages {
		fmt.Fprintf(a.stderr, "attach: %v: %s\n", why, stage.signal)
		async.Go(hook, func(ctx context.Context) error { // beside the wait: an engine that hangs holds up nothing
			ctx, cancel := context.WithTimeout(ctx, stage.within)
			defer cancel()
			_ = a.engine.kill(ctx, a.container, stage.signal) // whether it helped is seen at the end of the output
			return nil
		}, async.Name(stage.signal))
		select {
		case <-ended:
			return
		case <-time.After(stage.within):
		case <-stage.hurry:
		}
	}
	_ = conn.Close()
}

// ended returns how the container has ended.
func (a *attachment) ended(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	status, err := a.engine.wait(ctx, a.container)
	switch {
	case err != nil:
		return &lostError{fmt.Errorf("the output has ended, and nobody knows how the container has: %w", err)}
	case status != 0:
		return &statusError{status}
	}
	return nil
}
