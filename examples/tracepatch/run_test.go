//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"tracepatch": main})
}

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: clitest.Commands[*testscript.TestScript](), Setup: clitest.Setup[*testscript.Env]})
}

// A script that says who it is and then sleeps, with a child that ignores TERM.
const sleeper = `echo "group $$"; bash -c 'trap "" TERM; sleep 1000 & wait' & sleep 1000`

// start runs the program with a server, and returns when that has seen a text in the
// log.
func start(t *testing.T, h http.Handler, args ...string) *clitest.Process {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return clitest.Start(t, nil, "tracepatch", append([]string{"-url", server.URL, "-grace", "50ms", "-age", "10ms", "-touch", "10ms"}, args...)...)
}

// waitFor waits until the server has a text in the log.
func (s *traceServer) waitFor(t *testing.T, text string) {
	t.Helper()
	clitest.Eventually(t, text, func() bool { log, _ := s.content(); return strings.Contains(log, text) })
}

// content returns the log that the server has, and what it was told of the job.
func (s *traceServer) content() (log, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.log), s.state
}

// say changes what the server says about the job.
func (s *traceServer) say(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// group returns the process group that a sleeper has told of.
func (s *traceServer) group(t *testing.T) int {
	t.Helper()
	log, _ := s.content()
	return clitest.Number(t, log, "group")
}

// Two levels, and two who may ask for the first; the log is complete each time.
func TestCancelLetsTheAfterScriptRunAndAbortDoesNot(t *testing.T) {
	for _, tc := range []struct {
		name   string
		stop   func(s *traceServer, p *clitest.Process)
		status int
		after  bool
		says   string
	}{
		{"the server cancels", func(s *traceServer, _ *clitest.Process) { s.say("canceling") }, 1, true, "the server has canceled the job"},
		{"the server aborts", func(s *traceServer, _ *clitest.Process) { s.say("canceled") }, 1, false, "the server has aborted the job"},
		{"SIGINT", func(_ *traceServer, p *clitest.Process) { p.Signal(syscall.SIGINT) }, 130, true, "stopped by signal: interrupt"},
		{"SIGTERM", func(_ *traceServer, p *clitest.Process) { p.Signal(syscall.SIGTERM) }, 143, true, "stopped by signal: terminated"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := new(traceServer)
			p := start(t, s, "-script", sleeper, "-after", `echo "cleaned"" up"`)
			s.waitFor(t, "group")
			tc.stop(s, p)
			assert.Equal(t, tc.status, p.Wait(), p.Stderr())
			assert.Contains(t, p.Stderr(), tc.says)
			log, state := s.content()
			assert.Contains(t, log, "[tracepatch: "+tc.says+"]\n")
			assert.Equal(t, tc.after, strings.Contains(log, "\ncleaned up\n"), log)
			assert.Equal(t, !tc.after, strings.Contains(log, "the after-script is not run"), log)
			assert.Equal(t, "canceled", state)
			assert.Empty(t, clitest.InGroup(t, s.group(t)))
		})
	}
}

// The second level also stops an after-script that runs, whoever asked for the first.
func TestAbortStopsTheAfterScript(t *testing.T) {
	for name, stop := range map[string]func(s *traceServer, p *clitest.Process) int{
		"the server": func(s *traceServer, _ *clitest.Process) int { s.say("canceled"); return 1 },
		"two signals": func(_ *traceServer, p *clitest.Process) int {
			p.Signal(syscall.SIGINT)
			p.WaitForStderr("once more")
			p.Signal(syscall.SIGTERM)
			return 143
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := new(traceServer)
			p := start(t, s, "-script", "echo ready; sleep 1000", "-after", sleeper, "-grace", "100ms")
			s.waitFor(t, "ready")
			s.say("canceling")
			s.waitFor(t, "group")
			assert.Equal(t, stop(s, p), p.Wait(), p.Stderr())
			assert.Empty(t, clitest.InGroup(t, s.group(t)))
		})
	}
}

// The script has failed by itself; what it has left behind is told to end for that, and the cancel
// comes then: the job has failed, and was not cancelled.
func TestACancelJustAfterTheFailureChangesNothing(t *testing.T) {
	log, err := newJournal()
	require.NoError(t, err)
	defer log.close()
	soft, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	log.added = func(int) {
		text, _ := io.ReadAll(log.section(0, log.len()))
		if strings.Contains(string(text), "gone") {
			cancel(errCanceled)
		}
	}
	u := &uploader{log: log, hurry: context.WithoutCancel(t.Context())}
	trapped := filepath.Join(t.TempDir(), "trapped")
	c := &config{grace: time.Minute, script: "(trap 'echo gone; exit' TERM; touch " + trapped + "; while :; do sleep 0.01; done) &\n" +
		"until [ -e " + trapped + " ]; do sleep 0.01; done; exit 3"}
	err = c.scripts(soft, t.Context(), u)
	assert.Equal(t, "failed", u.state)
	assert.ErrorContains(t, err, "the job has failed: script: exit status 3")
}

// A script that answers TERM has its last words in the log.
func TestLastWordsAfterTheCancel(t *testing.T) {
	s := new(traceServer)
	p := start(t, s, "-grace", "1m", "-script", `trap 'echo -n "last words"; exit 7' TERM; echo ready; while :; do sleep 0.01; done`, "-after", "")
	s.waitFor(t, "ready")
	p.Signal(syscall.SIGTERM)
	assert.Equal(t, 143, p.Wait(), p.Stderr())
	log, _ := s.content()
	assert.Contains(t, log, "last words\n[tracepatch: stopped by")
}

// The job is over, and the server has not yet said that it has all, when a signal
// comes. The first is told of, and the log is sent; the second ends that, and it is
// told what is missing.
func TestASignalDuringTheFinalUploadIsHeard(t *testing.T) {
	for _, tc := range []struct {
		name    string
		signals []syscall.Signal
		status  int
		says    string
	}{
		{"one", []syscall.Signal{syscall.SIGTERM}, 0, "tracepatch: the server has all "},
		{"two", []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}, 130, "tracepatch: the log is not complete, the server has 5 of 5 bytes: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := new(traceServer)
			asked, answer := make(chan struct{}, 100), make(chan struct{})
			p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("State") == "success" {
					asked <- struct{}{}
					select {
					case <-answer:
					case <-r.Context().Done():
						return
					}
				}
				s.ServeHTTP(w, r)
			}), "-script", "echo word", "-after", "", "-final", "1h")
			<-asked
			for _, sig := range tc.signals {
				p.Signal(sig)
				p.WaitForStderr("stopped by signal: terminated: what is left to do is done, and the log is sent; once more, and it is not\n")
			}
			if len(tc.signals) == 1 {
				close(answer)
			}
			assert.Equal(t, tc.status, p.Wait(), p.Stderr())
			assert.Contains(t, p.Stderr(), tc.says)
		})
	}
}

// The job ends while the server is asked how it stands. The end waits for that answer: a
// request that was given up might come after the last one, and undo it.
func TestTheLastWordIsTheLast(t *testing.T) {
	s := new(traceServer)
	asked, answer := make(chan struct{}, 1000), make(chan struct{})
	var served sync.WaitGroup
	goOn := filepath.Join(t.TempDir(), "go-on")
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		defer served.Done()
		if r.Header.Get("State") == "running" {
			asked <- struct{}{}
			select {
			case <-answer:
			case <-r.Context().Done(): // given up: it comes late
				clitest.Eventually(t, "the last word", func() bool { _, state := s.content(); return state == "success" })
			}
		}
		s.ServeHTTP(w, r)
	}), "-script", "until [ -e "+goOn+" ]; do sleep 0.01; done", "-after", "echo over")
	<-asked
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	s.waitFor(t, "over")
	time.AfterFunc(100*time.Millisecond, func() { close(answer) })
	assert.Zero(t, p.Wait(), p.Stderr())
	served.Wait()
	_, state := s.content()
	assert.Equal(t, "success", state)
}

// Real requests, real processes, and every kind of fault.
func TestTheLogIsEqualAfterFaults(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := &traceServer{fault: randomFaults(seed)}
			p := start(t, s, "-size", "5000", "-script", "for i in 1 2 3 4 5; do seq 1 2000; sleep 0.02; done; printf end >&2; exit 3", "-after", "exit 4")
			assert.Equal(t, 1, p.Wait(), p.Stderr())
			var want strings.Builder
			for i := range 5 * 2000 {
				fmt.Fprintln(&want, i%2000+1)
			}
			log, state := s.content()
			assert.Equal(t, want.String()+"end\n[tracepatch: after-script]\n\n[tracepatch: after-script: exit status 4]\n", log)
			assert.Equal(t, "failed", state)
			assert.Contains(t, p.Stderr(), "tracepatch: the job has failed: script: exit status 3")
		})
	}
}

// Lines keep coming, faster than they get old enough: what is old is sent all the
// same.
func TestLinesAreSeenWhileMoreOfThemCome(t *testing.T) {
	s := new(traceServer)
	p := start(t, s, "-age", "200ms", "-script", "while :; do echo line; sleep 0.02; done", "-after", "")
	s.waitFor(t, "line\nline\nline\n")
	p.Signal(syscall.SIGINT)
	assert.Equal(t, 130, p.Wait(), p.Stderr())
}

// A server that will never take the log: the job is stopped, and it is told once why.
// A redirect that leads to a page does not say that the log is there.
func TestAServerThatRefusesEndsTheJob(t *testing.T) {
	elsewhere := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/login" {
			http.Redirect(w, r, "/login", http.StatusFound)
		}
	}
	for want, h := range map[string]http.Handler{`"404 Not Found"`: http.NotFoundHandler(), `"302 Found"`: http.HandlerFunc(elsewhere)} {
		p := start(t, h, "-script", "echo word; sleep 1000")
		assert.Equal(t, 1, p.Wait())
		assert.Regexp(t, `^tracepatch: the log is not complete, the server has 0 of 5 bytes: .*PATCH /trace: `+want+`\n$`, p.Stderr())
		p = start(t, h, "-script", "true")
		assert.Equal(t, 1, p.Wait())
		assert.Regexp(t, `^tracepatch: the log is not complete, the server has 0 of 0 bytes: .*PUT .*: `+want+`\n$`, p.Stderr())
	}
}
