//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/remote"
)

// Limits are how long each thing may take. All are positive but Script.
type Limits struct {
	Connect   time.Duration // until the shell is there
	Script    time.Duration // the script itself; 0 for no limit
	Term      time.Duration // from TERM to KILL
	Kill      time.Duration // from KILL to closing the connection
	Output    time.Duration // from the end of the script to that of its output
	KeepAlive time.Duration // between questions whether the server lives; it may take three times that to answer
}

// stopping is how long a script that was told to stop may take at most.
func (l Limits) stopping() time.Duration { return l.Term + l.Kill }

// A Step is a script and what it is run with.
type Step struct {
	Script         string
	Shell          string // reads the script from its stdin
	Stdout, Stderr io.Writer
	Notes          io.Writer // remarks for the user
	Limits         Limits

	// Hurry, if it is not nil, ends the time between TERM and KILL when it is
	// done. It stops nothing by itself.
	Hurry context.Context
}

// Run runs the script of the step on another machine. When ctx is done, or
// after the limit of the script, or when its output cannot be written, the
// script gets TERM, then KILL, then the connection is closed. The error tells
// why it was stopped and how it ended: errors.As finds an ExitError, errors.Is
// the cause; an AbandonedError says that the server has not told the end.
//
// Run returns when everything that it has started has ended. The one thing that
// it does not wait for is a Write to Stdout or Stderr that does not return, once
// ctx is done: it is named by a StragglerError.
func Run(ctx context.Context, to destination, step Step) error {
	l := step.Limits
	return async.Scope(ctx, func(ctx context.Context) error {
		s, err := connect(ctx, to, step.Shell, l.Connect)
		if err != nil {
			return err
		}
		defer s.close()
		s.serve(ctx)
		return (&running{session: s, Step: step}).run(ctx)
	}, async.Name("run on "+to.address))
}

// A running is a step whose shell has started.
type running struct {
	*session
	Step
	end    *async.Future[error]    // how the script has ended, nil for well, as soon as that is known
	ended  *async.Promise[error]   // settles end; the first to know does it
	script *async.Future[struct{}] // end, looked after
	meter  remote.Meter            // of the output
}

// run sends the script, copies its output, and waits for its end and then for
// the end of the output.
func (r *running) run(ctx context.Context) error {
	// It is settled by what the server says, or by the end of the connection, and
	// not by the cancellation: how the script ends then is what it is for.
	r.end, r.ended = async.NewPromise[error](context.WithoutCancel(ctx), async.Name("end"))
	async.Go(ctx, func(context.Context) error { r.listen(); return nil }, async.Name("listen"))

	r.script = async.Watch(ctx, r.ending, async.Every(r.Limits.KeepAlive), r.check(ctx),
		async.Name("script"),
		async.OnAbort(r.stop),
		async.HookTimeout(r.Limits.stopping()+r.Limits.Output), // it keeps to its own limits
		async.Grace(r.Limits.stopping()+r.Limits.Output))
	async.Go(ctx, func(context.Context) error { r.send(); return nil }, async.Name("send the script"))
	return remote.Keep(ctx, r.Limits.Output, func(kept context.Context) error {
		output := async.All(kept, r.pump(r.Stdout, r.channel), r.pump(r.Stderr, r.channel.Stderr()))
		_, err := r.script.Await(ctx, r.Limits.Script)
		if told, ok := errors.AsType[*remote.StoppedError](err); ok {
			err = told // holds the cause as well, and says it once
		}
		return errors.Join(err, r.drain(ctx, output, err))
	})
}

// bundle makes a script one compound command. A shell reads such a command to
// its end before it does any of it: if the connection breaks half-way, nothing
// is run rather than half of it. And a command that reads its input does not
// get the rest of the script.
func bundle(script string) string { return "{ :\n" + script + "\n} </dev/null\n" }

// send writes the script to the shell. If it fails, the shell or the
// connection has ended, and whoever waits for the end is told so.
func (r *running) send() {
	if _, err := io.Copy(r.channel, strings.NewReader(bundle(r.Script))); err == nil {
		_ = r.channel.CloseWrite()
	}
}

// listen settles end with what the server says about the end of the shell. It
// goes on until the channel is closed, as requests that nobody takes would
// block everything else on the connection.
func (r *running) listen() {
	for req := range r.requests {
		if ended, ok := parseExit(req); ok {
			r.ended.Resolve(ended)
		}
		if req.WantReply {
			_ = req.Reply(false, nil)
		}
	}
	r.ended.Resolve(errLost)
}

// parseExit reads the requests of RFC 4254, section 6.10.
func parseExit(req *ssh.Request) (ended error, ok bool) {
	switch req.Type {
	case "exit-status":
		var msg struct{ Status uint32 }
		if ssh.Unmarshal(req.Payload, &msg) != nil {
			return nil, false
		}
		if msg.Status == 0 {
			return nil, true
		}
		return &ExitError{Status: int(msg.Status)}, true
	case "exit-signal":
		var msg struct {
			Signal        string
			Core          bool
			Message, Lang string
		}
		if ssh.Unmarshal(req.Payload, &msg) != nil {
			return nil, false
		}
		return &ExitError{Signal: msg.Signal, Core: msg.Core}, true
	}
	return nil, false
}

// ending waits for the end of the script. That ctx is done does not end the
// wait: the abort hook sees to the end, and this says what it was.
func (r *running) ending(ctx context.Context) (struct{}, error) {
	ended, err := r.end.Wait(context.WithoutCancel(ctx))
	if err == nil {
		err = ended
	}
	return struct{}{}, remote.Stopped(ctx, err)
}

// silence is how many intervals of KeepAlive a server may take for an answer.
const silence = 3

// check returns a check that the server still answers. The question belongs to
// the scope of ctx, as it may wait for the answer until the connection is
// closed.
func (r *running) check(owner context.Context) func(context.Context) error {
	return func(ctx context.Context) error {
		question := async.Start(owner, func(context.Context) error { return r.alive() }, async.Name("keepalive"))
		if _, err := question.Await(ctx, silence*r.Limits.KeepAlive); err != nil {
			return fmt.Errorf("no sign of life from the server for %v", silence*r.Limits.KeepAlive)
		}
		return nil
	}
}
