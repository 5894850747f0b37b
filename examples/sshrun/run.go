package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

// A lostError says that nobody knows how the script has ended.
type lostError struct{ why string }

func (e *lostError) Error() string { return e.why + "; the script may still run there" }

// errOutput is the cause of a stop because the output cannot be written.
var errOutput = errors.New("cannot write the output")

// run runs the script. When ctx is done, or after the limit of the script, or when its output
// cannot be written, or when the server is silent, the script is stopped. The error tells why, and
// how the script ended. A process that it has started belongs to scope, and ends with the connection.
func (cfg *config) run(scope context.Context) error {
	ctx, stop := context.WithCancelCause(scope)
	defer stop(nil)
	s, err := cfg.open(ctx, func(shell *ssh.Session) {
		shell.Stdin = strings.NewReader(bundle(cfg.script))
		shell.Stdout = &output{os.Stdout, stop}
		shell.Stderr = &output{os.Stderr, stop}
	})
	if err != nil {
		return err
	}
	defer s.close()

	ended := make(chan struct{}) // closed when the script has ended
	var end error                // how it did
	script := func(ctx context.Context) (struct{}, error) {
		defer close(ended)
		end = outcome(s.Wait(), context.Cause(ctx))
		return struct{}{}, end
	}
	stopped := func(hook context.Context, _ error) error {
		cfg.stop(hook, service.Hurry(scope), s, ended)
		return nil
	}
	watched := async.Watch(ctx, script, async.Every(cfg.keepAlive), cfg.alive(scope, s),
		async.Name("script"),
		async.Timeout(cfg.timeout),
		async.OnAbort(stopped),
		async.HookTimeout(2*(cfg.term+cfg.kill)), // stop keeps to its own limits
		async.Grace(2*(cfg.term+cfg.kill)),
	)
	_, err = watched.Join(ctx) // how the script ends is what it is for
	if end != nil {
		return end
	}
	return err
}

// stop is the abort hook of the script: TERM, and if that does not end it KILL, and if that
// does not, the end of the connection. Each stage has its time, and the first that helps is the
// last. hook is not cancelled with the script.
func (cfg *config) stop(hook, hurry context.Context, s *session, ended <-chan struct{}) {
	signal := func(sig ssh.Signal) { // a task beside us: it blocks if the server does not read
		async.Go(hook, func(context.Context) error {
			_ = s.Signal(sig) // whether it helped is seen at the end of the script
			return nil
		}, async.Name(string(sig)))
	}

	signal(ssh.SIGTERM)
	select {
	case <-ended:
		return
	case <-time.After(cfg.term):
	case <-hurry.Done(): // the second signal
	}

	signal(ssh.SIGKILL)
	select {
	case <-ended:
		return
	case <-time.After(cfg.kill):
	}

	_ = s.tcp.Close() // ends whatever waits for the server, signals that are not sent yet, too
}

// bundle makes a script one compound command. A shell reads such a command to
// its end before it does any of it: if the connection breaks half-way, nothing
// is run rather than half of it. And a command that reads its input does not
// get the rest of the script.
func bundle(script string) string { return "{ :\n" + script + "\n} </dev/null\n" }

// An output writes. A write that fails stops the script, and the rest is dropped, so that
// the script is not kept from ending.
type output struct {
	io.Writer
	stop context.CancelCauseFunc
}

func (o *output) Write(p []byte) (int, error) {
	if _, err := o.Writer.Write(p); err != nil {
		o.stop(fmt.Errorf("%w: %w", errOutput, err))
	}
	return len(p), nil
}

// outcome says how the script has ended and, if it was stopped, why. One that traps TERM and
// exits with 0 was stopped all the same.
func outcome(end, cause error) error {
	switch {
	case end == nil && cause == nil:
		return nil
	case end == nil:
		return fmt.Errorf("%w; the script exited with status 0", cause)
	case !errors.As(end, new(*ssh.ExitError)):
		end = &lostError{"the connection has ended before the script has: " + end.Error()}
	}
	if cause == nil {
		return end
	}
	return fmt.Errorf("%w; %w", cause, end)
}

// alive returns a check that the server still answers. The question belongs to
// owner, as it may wait for the answer until the connection is closed. A server that has
// nothing to do with such requests says so, which is as good.
func (cfg *config) alive(owner context.Context, s *session) func(context.Context) error {
	return func(ctx context.Context) error {
		question := async.Start(owner, func(context.Context) error {
			_, _, _ = s.client.SendRequest("keepalive@openssh.com", true, nil)
			return nil
		}, async.Name("keepalive"))
		if _, err := question.Await(ctx, 3*cfg.keepAlive); err != nil {
			return fmt.Errorf("no sign of life from the server for %v", 3*cfg.keepAlive)
		}
		return nil
	}
}
