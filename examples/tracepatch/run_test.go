//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ambit-go/ambit/examples/internal/clitest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A script that says who it is and then sleeps, with a child that ignores TERM.
const sleeper = `echo "group $$"; bash -c 'trap "" TERM; sleep 1000 & wait' & sleep 1000`

// start runs the program with a server, and returns when the server has seen a
// text in the log.
func start(t *testing.T, s *traceServer, text string, args ...string) *clitest.Process {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	p := clitest.Start(t, nil, "tracepatch", append([]string{"-url", server.URL, "-grace", "50ms", "-age", "10ms", "-touch", "10ms"}, args...)...)
	s.waitFor(t, text)
	return p
}

func (s *traceServer) waitFor(t *testing.T, text string) {
	t.Helper()
	until(t, text, func() bool { log, _ := s.content(); return strings.Contains(log, text) })
}

// group returns the process group that a sleeper has told of.
func (s *traceServer) group(t *testing.T) int {
	t.Helper()
	log, _ := s.content()
	m := regexp.MustCompile(`group (\d+)\n`).FindStringSubmatch(log)
	require.Len(t, m, 2, log)
	id, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	return id
}

// Two levels, and two who may ask for each.
func TestCancelLetsTheAfterScriptRunAndAbortDoesNot(t *testing.T) {
	for _, tc := range []struct {
		name   string
		stop   func(s *traceServer, p *clitest.Process)
		status int
		after  bool
		says   string
	}{
		{"the server cancels", func(s *traceServer, _ *clitest.Process) { s.say("canceling") }, 3, true, "[tracepatch: the server has canceled the job]\n"},
		{"the server aborts", func(s *traceServer, _ *clitest.Process) { s.say("canceled") }, 4, false, "[tracepatch: the server has aborted the job]\n"},
		{"SIGINT", func(_ *traceServer, p *clitest.Process) { p.Signal(syscall.SIGINT) }, 130, true, "[tracepatch: stopped by signal: interrupt]\n"},
		{"SIGTERM", func(_ *traceServer, p *clitest.Process) { p.Signal(syscall.SIGTERM) }, 143, true, "[tracepatch: stopped by signal: terminated]\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := new(traceServer)
			p := start(t, s, "group", "-script", sleeper, "-after", `echo "cleaned"" up"`)
			tc.stop(s, p)
			assert.Equal(t, tc.status, p.Wait(), p.Stderr())
			log, state := s.content()
			assert.Contains(t, log, tc.says)
			assert.Equal(t, tc.after, strings.Contains(log, "\ncleaned up\n"), log)
			assert.Equal(t, !tc.after, strings.Contains(log, "the after-script is not run"), log)
			assert.Equal(t, "canceled", state)
			assert.Empty(t, clitest.InGroup(t, s.group(t)))
		})
	}
}

// The second level also stops an after-script that runs, whoever asked for the
// first.
func TestAbortStopsTheAfterScript(t *testing.T) {
	for _, tc := range []struct {
		name   string
		stop   func(s *traceServer, p *clitest.Process)
		status int
	}{
		{"the server", func(s *traceServer, _ *clitest.Process) { s.say("canceled") }, 3},
		{"a signal", func(_ *traceServer, p *clitest.Process) { p.Signal(syscall.SIGINT) }, 130},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := new(traceServer)
			p := start(t, s, "ready", "-script", "echo ready; sleep 1000", "-after", sleeper+"; echo not"+" so")
			s.say("canceling")
			s.waitFor(t, "group")
			tc.stop(s, p)
			assert.Equal(t, tc.status, p.Wait(), p.Stderr())
			log, state := s.content()
			assert.NotContains(t, log, "not so")
			assert.Regexp(t, `after-script: ended by SIG(TERM|KILL), stopped: `, log)
			assert.Equal(t, "canceled", state)
			assert.Empty(t, clitest.InGroup(t, s.group(t)))
		})
	}
}

// The second signal comes while the script is still busy with the first.
func TestSecondSignalAborts(t *testing.T) {
	s := new(traceServer)
	may := filepath.Join(t.TempDir(), "end")
	p := start(t, s, "ready", "-grace", "10m", "-after", "echo not"+" so",
		"-script", `trap 'echo told' TERM; echo ready; while [ ! -e `+may+` ]; do sleep 0.02; done`)
	p.Signal(syscall.SIGINT)
	s.waitFor(t, "told")
	p.Signal(syscall.SIGTERM)
	until(t, "the second signal to arrive", func() bool { return strings.Contains(p.Stderr(), "the job is aborted") })
	require.NoError(t, os.WriteFile(may, nil, 0o600))
	assert.Equal(t, 143, p.Wait(), p.Stderr())
	log, state := s.content()
	assert.Contains(t, log, "aborted: the after-script is not run")
	assert.NotContains(t, log, "not so")
	assert.Equal(t, "canceled", state)
}

// A script that answers TERM has its last words in the log.
func TestLastWordsAfterTheCancel(t *testing.T) {
	s := new(traceServer)
	p := start(t, s, "ready", "-grace", "30s", "-script", `trap 'echo -n "last words"; exit 7' TERM; echo ready; while :; do sleep 0.01; done`, "-after", "")
	p.Signal(syscall.SIGTERM)
	assert.Equal(t, 143, p.Wait(), p.Stderr())
	log, state := s.content()
	assert.Contains(t, log, "last words")
	assert.Equal(t, "canceled", state)
	assert.Equal(t, 7, s.code)
}

// Real requests, real processes, and every kind of fault.
func TestLogIsEqualAfterFaultsOverTheNetwork(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := &traceServer{fault: randomFaults(seed)}
			p := start(t, s, "", "-size", "5000", "-script", "for i in 1 2 3 4 5; do seq 1 2000; sleep 0.02; done; printf end >&2; exit 3", "-after", "")
			assert.Equal(t, 1, p.Wait(), p.Stderr())
			var want strings.Builder
			for range 5 {
				for i := 1; i <= 2000; i++ {
					fmt.Fprintln(&want, i)
				}
			}
			log, state := s.content()
			assert.Equal(t, want.String()+"end", log)
			assert.Equal(t, "failed", state)
			assert.Equal(t, 3, s.code)
			assert.Contains(t, p.Stderr(), "tracepatch: the job has failed: script: exit status 3")
		})
	}
}

// A redirect is the answer, not what is at its end: that was asked with GET.
func TestRedirectIsNotFollowed(t *testing.T) {
	elsewhere := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			elsewhere <- struct{}{}
		} else if r.Method == http.MethodPatch {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}
	}))
	defer server.Close()
	p := clitest.Start(t, nil, "tracepatch", "-url", server.URL, "-age", "10ms", "-script", "echo ready; sleep 1000")
	assert.Equal(t, 5, p.Wait())
	assert.Equal(t, "tracepatch: the log is not complete: PATCH /trace: 302 Found\n", p.Stderr(), "told once, and nothing is said to be complete")
	assert.Empty(t, elsewhere)
}
