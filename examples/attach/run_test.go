//go:build unix

package main

import (
	"context"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"attach": main})
}

// An attached is an attach to a container, and its stdin.
type attached struct {
	*clitest.Process
	stdin *os.File
}

// start attaches to the container of an engine.
func start(t *testing.T, e *fakeEngine, flags ...string) *attached {
	t.Helper()
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	args := append([]string{"-host", "tcp://" + server.Listener.Addr().String()}, flags...)
	p := clitest.Start(t, func(cmd *exec.Cmd) { cmd.Stdin = r }, "attach", append(args, "it")...)
	require.NoError(t, r.Close())
	return &attached{p, w}
}

// container makes an engine whose container ends with the test at the latest.
func container(t *testing.T, script string) *fakeEngine {
	ctx, cancel := context.WithCancel(asynctest.Context(t))
	t.Cleanup(cancel)
	return newFakeEngine(ctx, script)
}

// The end of stdin is the container's to see, and not the end of the race.
func TestTheEndOfStdinIsNotTheEnd(t *testing.T) {
	p := start(t, container(t, `cat; echo "that was all"; echo oops >&2; exit 3`))
	_, err := io.WriteString(p.stdin, "a word")
	require.NoError(t, err)
	require.NoError(t, p.stdin.Close())
	assert.Equal(t, 3, p.Wait())
	assert.Equal(t, "a wordthat was all\n", p.Stdout())
	assert.Equal(t, "oops\nattach: the container has exited with status 3\n", p.Stderr())
}

// A container with a terminal has one stream, in no frames.
func TestTheOutputOfATerminalIsCopiedAsItIs(t *testing.T) {
	e := container(t, "echo a word; echo another >&2")
	e.tty = true
	p := start(t, e)
	assert.Equal(t, 0, p.Wait(), p.Stderr())
	assert.Equal(t, "a word\nanother\n", p.Stdout())
}

// Stdin stays open, as a terminal does, with somebody who reads it: the end of the output is the end.
func TestTheEndOfTheOutputIsTheEnd(t *testing.T) {
	p := start(t, container(t, "echo done"))
	assert.Equal(t, 0, p.Wait(), p.Stderr())
	assert.Equal(t, "done\n", p.Stdout())
}

// A lot goes both ways at once.
func TestNothingIsLost(t *testing.T) {
	p := start(t, container(t, "cat"))
	text := strings.Repeat("0123456789abcde\n", 1<<16)
	fed := make(chan error, 1)
	go func() {
		_, err := io.WriteString(p.stdin, text)
		_ = p.stdin.Close()
		fed <- err
	}()
	assert.Equal(t, 0, p.Wait(), p.Stderr())
	assert.NoError(t, <-fed)
	assert.True(t, text == p.Stdout())
}

// A signal stops the container, and what it says then is read to its end.
func TestASignalStopsTheContainer(t *testing.T) {
	clitest.Signals(t, func(t *testing.T, sig syscall.Signal, status int) {
		p := start(t, container(t, "trap 'echo last words; exit 7' TERM; echo ready; while :; do sleep 0.01; done"), "-grace", "1m")
		p.WaitFor("ready")
		p.Signal(sig)
		assert.Equal(t, status, p.Wait())
		assert.Equal(t, "ready\nlast words\n", p.Stdout())
		assert.Contains(t, p.Stderr(), "attach: stopped by signal: "+sig.String()+"; the container has exited with status 7\n")
	})
}

// The second signal ends the grace; so does its time.
func TestAContainerThatIgnoresTERMIsKilled(t *testing.T) {
	for _, grace := range []string{"1m", "10ms"} {
		p := start(t, container(t, "trap '' TERM; echo ready; while :; do sleep 0.01; done"), "-grace", grace)
		p.WaitFor("ready")
		p.Signal(os.Interrupt)
		if grace == "1m" {
			p.WaitForStderr("attach: stopped by signal: interrupt: TERM\n")
			p.Signal(syscall.SIGTERM)
		}
		assert.Equal(t, 130, p.Wait())
		assert.Contains(t, p.Stderr(), "the container has exited with status 137")
	}
}

// An engine that does not answer holds up nothing: the connection ends after both times.
func TestAnEngineThatHangsIsLeft(t *testing.T) {
	e := container(t, "echo ready; exec sleep 600")
	e.deaf = true
	p := start(t, e, "-grace", "10ms", "-kill", "10ms")
	p.WaitFor("ready")
	p.Signal(os.Interrupt)
	assert.Equal(t, 130, p.Wait())
	assert.Contains(t, p.Stderr(), "use of closed network connection")
}

// Output that breaks off is an error, not an end.
func TestTornOutputIsAnError(t *testing.T) {
	e := container(t, "echo done")
	e.ends = "torn"
	p := start(t, e)
	assert.Equal(t, 1, p.Wait())
	assert.Equal(t, "done\nlost", p.Stdout())
	assert.Equal(t, "attach: unexpected EOF\n", p.Stderr())
}

func TestWhatIsWrongIsTold(t *testing.T) {
	server := httptest.NewServer(container(t, ""))
	t.Cleanup(server.Close)
	host := "tcp://" + server.Listener.Addr().String()
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"-h"}, 0, "usage: attach"},
		{[]string{}, 2, "name one container"},
		{[]string{"-host", "nowhere", "it"}, 2, "name one container"},
		{[]string{"-host", host, "other"}, 125, `attaching to other: json: "404 Not Found"`},
		{[]string{"-host", "unix:///nowhere", "it"}, 125, "no such file"},
	} {
		p := clitest.Start(t, nil, "attach", test.args...)
		assert.Equal(t, test.status, p.Wait(), test.args)
		assert.Contains(t, p.Stderr(), test.want)
	}
}
