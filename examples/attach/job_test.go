//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/attach/daemon"
	"github.com/ambit-go/ambit/examples/internal/clitest"
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

func unhurried() Limits { return Limits{Request: hang, Grace: hang, Output: hang} }

// serve starts a daemon that ends with the test, or when stop is called.
func serve(t *testing.T, flaw daemon.Flaw) (d *daemon.Daemon, socket string, stop func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "attach") // a socket's path has to be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "sock")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	d = &daemon.Daemon{Flaw: flaw}
	served := async.Start(ctx, func(ctx context.Context) error { return d.Serve(ctx, l) })
	stop = func() {
		cancel()
		_, err := served.Wait(context.Background())
		if !errors.Is(err, context.Canceled) {
			assert.NoError(t, err, "the daemon")
		}
	}
	t.Cleanup(stop)
	return d, socket, stop
}

// A trial is a run of a script.
type trial struct {
	flaw   daemon.Flaw
	script string
	stdin  io.Reader // nothing if nil
	limits Limits
	at     <-chan struct{}           // when this is closed, do; "ready" if it is nil
	do     func(stop, cancel func()) // stop stops the daemon, cancel the run
	stdout io.Writer
	gone   bool // the daemon is, in the end
}

type result struct {
	out, err, notes *clitest.Sign
	failure         error
	stopDaemon      func()
}

func cancelling(_, cancel func()) { cancel() }

// run runs it.
func (c trial) run(t *testing.T) result {
	t.Helper()
	d, socket, stop := serve(t, c.flaw)
	r := result{out: clitest.NewSign(), err: clitest.NewSign(), notes: clitest.NewSign(), stopDaemon: stop}
	job := Job{
		Name: "test", Cmd: []string{"bash", "-c", c.script},
		Stdin: c.stdin, Stdout: r.out, Stderr: r.err, Notes: r.notes, Limits: c.limits,
	}
	if job.Stdin == nil {
		job.Stdin = strings.NewReader("")
	}
	if c.stdout != nil {
		job.Stdout = c.stdout
	}
	if c.at == nil {
		c.at = r.out.Ready
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.failure = Run(ctx, newClient(socket, c.limits.Request), job)
	}()
	if c.do != nil {
		select {
		case <-c.at:
			c.do(stop, func() { cancel(errUser) })
		case <-done:
		}
	}
	select {
	case <-done:
	case <-time.After(hang / 2):
		t.Error("it hangs")
		cancel(errUser)
		<-done
	}
	if c.flaw != daemon.Silent && !c.gone {
		assert.Empty(t, d.Names(), "containers that are left")
	}
	return r
}
