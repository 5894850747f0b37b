//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

// A backend is an API on a real connection. It records what it was asked for.
type backend struct {
	url     string
	hanging chan struct{} // closed when a request hangs

	mu    sync.Mutex
	asked []string
}

func newBackend(t *testing.T) *backend {
	s := &backend{hanging: make(chan struct{})}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := s.note(r)
	switch {
	case r.URL.Path == "/hang":
		if n == 1 {
			close(s.hanging)
		}
		_, _ = io.Copy(io.Discard, r.Body) // so that the server sees the client go
		<-r.Context().Done()
	case r.URL.Path == "/elsewhere":
		http.Redirect(w, r, "/plain", http.StatusSeeOther)
	case r.URL.Path == "/in-use":
		w.WriteHeader(http.StatusConflict)
	case strings.HasPrefix(r.URL.Path, "/busy") && n < 3:
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// note returns how often the path has been asked for.
func (s *backend) note(r *http.Request) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.URL.Path)
	for _, path := range s.asked {
		if path == r.URL.Path {
			n++
		}
	}
	return n
}

// requests returns the paths that were asked for, in order.
func (s *backend) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// plan writes a plan in which paths stand for requests.
func (s *backend) plan(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "plan.txt")
	text = strings.ReplaceAll(text, "  /", s.url+"/")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
	return name
}

const allKinds = `
phase containers 1m
  /busy1
  /plain1
phase networks 2s
  /hang
phase volumes 1m
  /in-use
  /busy2
`

// The job is cancelled by a signal. A request that fails for a while, one that fails for good
// and one that hangs: each is told, and nothing is kept from its turn.
func TestJobThatIsSignalledIsCleanedUpAfter(t *testing.T) {
	clitest.Signals(t, func(t *testing.T, sig syscall.Signal, status int) {
		s := newBackend(t)
		p := clitest.Start(t, nil, "cleanup", s.plan(t, allKinds), "sh", "-c", "echo at work; exec sleep 1000")
		p.WaitFor("at work")
		assert.Empty(t, s.requests(), "the job is not over")
		p.Signal(sig)
		assert.Equal(t, status, p.Wait())

		asked := s.requests()
		require.Len(t, asked, 9)
		assert.ElementsMatch(t, []string{"/busy1", "/busy1", "/busy1", "/plain1"}, asked[:4])
		assert.Equal(t, "/hang", asked[4])
		assert.ElementsMatch(t, []string{"/in-use", "/busy2", "/busy2", "/busy2"}, asked[5:])
		assert.Regexp(t, `(?s)removed .*/busy1\n.*removed .*/plain1\n.*LEFT .*/hang\n.*LEFT .*/in-use\n.*removed .*/busy2\n`, p.Stdout())
		lines := strings.Split(p.Stderr(), "\n")
		require.Len(t, lines, 5)
		assert.Equal(t, fmt.Sprintf("cleanup: sh: ended by SIGTERM, stopped by signal: %v", sig), lines[0])
		assert.Equal(t, "2 of 5 not removed:", lines[1])
		assert.Regexp(t, "^\tnetworks: async: "+s.url+"/hang: no answer after 1 attempt: .*limit 2s", lines[2])
		assert.Regexp(t, "^\tvolumes: async: "+s.url+"/in-use: .*409 Conflict", lines[3])
	})
}

// Whoever cannot wait for the cleaning up either sends three.
func TestThirdSignalEndsTheCleaningUp(t *testing.T) {
	s := newBackend(t)
	p := clitest.Start(t, nil, "cleanup", "-request-timeout", "24h", s.plan(t, "phase a 24h\n  /hang\nphase b\n  /never\n"), "sh", "-c", "echo at work; exec sleep 1000")
	p.WaitFor("at work")
	p.Signal(os.Interrupt)
	<-s.hanging
	p.Signal(os.Interrupt)
	p.Signal(syscall.SIGTERM) // two of a kind could count as one
	assert.Contains(t, []int{130, 143}, p.Wait())
	assert.NotContains(t, s.requests(), "/never")
}

// Every way to end but a signal. The page that a redirect leads to is there, and was not removed.
func TestStatusOfTheCommandIsKept(t *testing.T) {
	for _, test := range []struct {
		path   string
		status int
		stderr string
		args   []string
	}{
		{"/plain", 0, "", []string{"true"}},
		{"/plain", 3, "cleanup: sh: exit status 3\n", []string{"sh", "-c", "exit 3"}},
		{"/plain", 127, "cleanup: no-such-command: exec:", []string{"no-such-command"}},
		{"/plain", 124, "cleanup: sleep: ended by SIGTERM, stopped: ", []string{"sleep", "1000"}},
		{"/in-use", 125, "cleanup: 1 of 1 not removed:", []string{"true"}},
		{"/in-use", 3, "cleanup: sh: exit status 3\n1 of 1 not removed:", []string{"sh", "-c", "exit 3"}},
		{"/in-use", 128 + int(syscall.SIGUSR1), "cleanup: sh: ended by SIGUSR1", []string{"sh", "-c", "kill -USR1 $$"}},
		{"/elsewhere", 125, `"303 See Other"`, []string{"true"}},
	} {
		s := newBackend(t)
		flags := []string{s.plan(t, "phase a\n  "+test.path+"\n")}
		if test.status == 124 {
			flags = slices.Insert(flags, 0, "-timeout", "50ms")
		}
		p := clitest.Start(t, nil, "cleanup", append(flags, test.args...)...)
		assert.Equal(t, test.status, p.Wait(), test.args)
		assert.Contains(t, p.Stderr(), test.stderr)
		assert.Equal(t, []string{test.path}, s.requests())
	}
}

// The command ignores TERM, and so does a child of it, which it leaves behind: the end of the
// grace has both killed, and so has the second signal. Neither ends the cleaning up.
func TestCommandThatIgnoresSignalsIsKilledWithItsGroup(t *testing.T) {
	for grace, signals := range map[string]int{"50ms": 1, "24h": 2} {
		s := newBackend(t)
		p := clitest.Start(t, nil, "cleanup", "-grace", grace, s.plan(t, "phase a\n  /plain\n"), "bash", "-c",
			`(trap "" TERM; exec sleep 1000) & trap "echo told" TERM; echo group $$; while :; do sleep 1000 & wait $!; done`)
		group := clitest.Number(t, p.WaitFor("group"), "group")
		t.Cleanup(func() { _ = syscall.Kill(-group, syscall.SIGKILL) }) // should the test fail
		p.Signal(os.Interrupt)
		if signals == 2 {
			p.WaitFor("told")
			p.Signal(os.Interrupt)
		}
		assert.Equal(t, 130, p.Wait())
		assert.Contains(t, p.Stdout(), "job: bash: ended by SIGKILL, stopped by signal: interrupt\n")
		assert.Empty(t, clitest.InGroup(t, group))
		assert.Equal(t, []string{"/plain"}, s.requests())
	}
}

// A closed pipe must not keep anything from being removed.
func TestReaderThatHasGoneStopsTheCommand(t *testing.T) {
	s := newBackend(t)
	p := clitest.Start(t, nil, "bash", "-c", `cleanup "$0" sh -c 'while echo y; do :; done' | head -n 1; exit "${PIPESTATUS[0]}"`, s.plan(t, "phase a\n  /plain\n"))
	assert.Equal(t, 141, p.Wait(), p.Stderr())
	assert.Equal(t, []string{"/plain"}, s.requests())
}

// A reader that stands still does not have all of the output when the command has ended. How long that may last
// cannot be waited out here.
func TestReaderThatStandsStillIsWaitedFor(t *testing.T) {
	assert.Equal(t, 24*time.Hour, new(config).command(nil, t.Context()).GiveUp)
}

// Nobody has noticed that the reader has gone when things are to be removed.
func TestReaderThatHasGoneDoesNotKeepAnythingFromBeingRemoved(t *testing.T) {
	s := newBackend(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	p := clitest.Start(t, func(cmd *exec.Cmd) { cmd.Stdout = w }, "cleanup", s.plan(t, "phase a\n  /plain\n"), "true")
	require.NoError(t, w.Close())
	assert.Equal(t, 141, p.Wait(), p.Stderr())
	assert.Equal(t, []string{"/plain"}, s.requests())
}
