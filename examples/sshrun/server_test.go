//go:build unix

package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/clitest"
	"github.com/ambit-go/ambit/examples/sshrun/sshserver"
)

// hang bounds what must not hang. No test takes as long as that.
const hang = time.Minute

// soon is a limit that is meant to pass.
const soon = 50 * time.Millisecond

var errUser = errors.New("cancelled by the user")

// forever ends a script that goes on until a signal; a trap runs at once. It is
// the child that says "ready", when it has become a program of its own: a fork
// of bash that has not yet loses a TERM that the script traps, sleeps on, and
// keeps the group from ending until the grace is over.
const forever = "; bash -c 'echo ready; exec sleep 60' & wait $!; while :; do sleep 60 & wait $!; done"

// unhurried are limits that no test reaches.
func unhurried() Limits {
	return Limits{Connect: hang, Term: hang, Kill: hang, Output: hang, KeepAlive: hang}
}

// listen starts a server on the loopback interface that ends with the test, or
// when stop is called, and returns the way to it.
func listen(t *testing.T, server *sshserver.Server) (to destination, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := async.Start(ctx, func(ctx context.Context) error { return server.Serve(ctx, l) })
	stop = func() {
		cancel()
		_, err := served.Wait(context.Background())
		assert.NoError(t, ignoreCancel(err), "the server")
	}
	t.Cleanup(stop)
	return destination{address: l.Addr().String(), user: server.User}, stop
}

func ignoreCancel(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// demoServer starts a server with a flaw and returns a way to it that works.
func demoServer(t *testing.T, flaw sshserver.Flaw) (to destination, stop func()) {
	t.Helper()
	server, to, err := newDemo(&config{server: string(flaw), limits: Limits{Term: soon}})
	require.NoError(t, err)
	at, stop := listen(t, server)
	to.address = at.address
	return to, stop
}

// A trial is a run of a script.
type trial struct {
	flaw   sshserver.Flaw
	script string
	limits Limits
	cancel bool            // when the script has printed "ready"
	change func(*Step)     // may be nil
	tune   func(net.Conn)  // may be nil
	when   <-chan struct{} // cancel then instead; may be nil
}

type result struct {
	out, err, notes *clitest.Sign
	failure         error
	stopServer      func()
}

// run runs it. Scripts whose processes are looked for say their process id, in
// a line "pid N".
func (c trial) run(t *testing.T) result {
	t.Helper()
	to, stop := demoServer(t, c.flaw)
	to.tune = c.tune
	r := result{out: clitest.NewSign(), err: clitest.NewSign(), notes: clitest.NewSign(), stopServer: stop}
	step := Step{Script: c.script, Shell: "bash", Stdout: r.out, Stderr: r.err, Notes: r.notes, Limits: c.limits}
	if c.change != nil {
		c.change(&step)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	when := c.when
	if when == nil {
		when = r.out.Ready
	}
	if c.cancel {
		defer context.AfterFunc(watching(t, when), func() { cancel(errUser) })()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.failure = Run(ctx, to, step)
	}()
	select {
	case <-done:
	case <-time.After(hang / 2):
		t.Error("it hangs")
		cancel(errUser)
		<-done
	}
	return r
}

// watching returns a context that is done when c is closed or the test ends.
func watching(t *testing.T, c <-chan struct{}) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	stop := make(chan struct{})
	var over sync.WaitGroup
	over.Go(func() {
		select {
		case <-c:
			cancel()
		case <-stop:
		}
	})
	t.Cleanup(func() { close(stop); over.Wait(); cancel() })
	return ctx
}

func signer(t *testing.T) ssh.Signer {
	t.Helper()
	key, err := newKey()
	require.NoError(t, err)
	return key
}
