//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/examples/internal/clitest"
)

const (
	quick = "10ms" // between two looks

	// stubborn answers TERM with 7.
	stubborn = `trap 'exit 7' TERM; bash -c "echo ready $$; exec sleep 600" & wait`
)

// A step is a watchstep whose command has said "ready" and its process group.
type step struct {
	*clitest.Process
	t     *testing.T
	group int
}

// start runs a script, which has to print "ready" and its $$.
func start(t *testing.T, script string, flags ...string) *step {
	t.Helper()
	args := append([]string{"-grace", "1m", "-stale", "1h", "-answer", "1m"}, flags...)
	s := &step{t: t, Process: clitest.Start(t, nil, "watchstep", append(args, "--", "bash", "-c", script)...)}
	group, err := strconv.Atoi(strings.Fields(s.WaitFor("ready"))[1])
	require.NoError(t, err)
	s.group = group
	return s
}

// end waits for the end and returns the exit status. Nothing is left of the
// group then.
func (s *step) end() int {
	s.t.Helper()
	status := s.Wait()
	assert.Empty(s.t, clitest.InGroup(s.t, s.group), "left in the group")
	return status
}

// A patient is asked for the health of a command. All is well until it is told to
// answer otherwise.
type patient struct {
	*httptest.Server
	mu     sync.Mutex
	asked  int
	answer func(n int, w http.ResponseWriter, r *http.Request) // the n-th time, from 1
}

func newPatient(t *testing.T) *patient {
	p := new(patient)
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// from says how it answers from now on.
func (p *patient) from(answer func(n int, w http.ResponseWriter, r *http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked, p.answer = 0, answer
}

func (p *patient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked++
	n, answer := p.asked, p.answer
	p.mu.Unlock()
	if answer != nil {
		answer(n, w, r)
	}
}

func (p *patient) times() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func sick(w http.ResponseWriter) { http.Error(w, "sick", http.StatusServiceUnavailable) }

func TestACancelByTheUser(t *testing.T) {
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		t.Run(sig.String(), func(t *testing.T) {
			s := start(t, stubborn, "-beat", "never")
			s.Signal(sig)
			assert.Equal(t, want, s.end())
			text := "stopped by signal: " + sig.String()
			assert.Equal(t, "watchstep: SIGTERM: "+text+"\nwatchstep: cancelled: bash: exit status 7, stopped: "+text+"\n", s.Stderr())
		})
	}
}

func TestASecondSignalEndsTheGrace(t *testing.T) {
	s := start(t, "trap '' TERM; sleep 600 & echo ready $$; wait", "-beat", "never")
	s.Signal(os.Interrupt)
	s.WaitForStderr("SIGTERM")
	s.Signal(os.Interrupt)
	assert.Equal(t, 130, s.end())
	assert.Contains(t, s.Stderr(), "ended by SIGKILL")
}

// The third bad answer in a row is one too many: not the second, and not any
// number of them with a good one between. The abort is told which.
func TestTwoTransientFailuresAreTolerated(t *testing.T) {
	p := newPatient(t)
	s := start(t, stubborn, "-health", p.URL, "-every", quick)
	p.from(func(n int, w http.ResponseWriter, _ *http.Request) {
		if n > 9 || n%3 != 0 { // bad, bad, well, three times, and then nothing but bad
			sick(w)
		}
	})
	assert.Equal(t, statusWatchdog, s.end())
	assert.Equal(t, 12, p.times())
	cause := "async: watchdog of the command: health: " + p.URL + ": 503 Service Unavailable"
	assert.Equal(t, "watchstep: SIGTERM: "+cause+"\nwatchstep: given up: bash: exit status 7, stopped: "+cause+"\n", s.Stderr())
}

func TestNoFailureIsToleratedOnRequest(t *testing.T) {
	p := newPatient(t)
	s := start(t, stubborn, "-health", p.URL, "-every", quick, "-tolerate", "0")
	p.from(func(_ int, w http.ResponseWriter, _ *http.Request) { sick(w) })
	assert.Equal(t, statusWatchdog, s.end())
	assert.Equal(t, 1, p.times())
}

func TestTheFirstLookWaitsForTheStartUp(t *testing.T) {
	p := newPatient(t)
	p.from(func(_ int, w http.ResponseWriter, _ *http.Request) { sick(w) })
	s := start(t, "echo ready $$", "-health", p.URL, "-every", quick, "-startup", "1h")
	assert.Equal(t, 0, s.end())
	assert.Equal(t, 0, p.times())
}

func TestACommandThatIsWellIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	p := newPatient(t)
	s := start(t, `echo ready $$; until [ -e "`+dir+`/enough" ]; do sleep 0.01; touch "`+dir+`/beat"; done`,
		"-health", p.URL, "-every", quick, "-beat", dir+"/beat")
	p.from(func(n int, _ http.ResponseWriter, _ *http.Request) {
		if n == 10 {
			assert.NoError(t, os.WriteFile(dir+"/enough", nil, 0o600))
		}
	})
	assert.Equal(t, 0, s.end())
	assert.Empty(t, s.Stderr())
}

// An answer that does not come is a bad one. That it is told as a timeout does
// not make it the command's.
func TestAnAnswerThatDoesNotComeIsTheWatchdogs(t *testing.T) {
	p := newPatient(t)
	s := start(t, stubborn, "-health", p.URL, "-every", quick, "-answer", "300ms", "-timeout", "1h")
	p.from(func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }) // asked for no longer
	assert.Equal(t, statusWatchdog, s.end())
	assert.Contains(t, s.Stderr(), "given up")
	assert.Contains(t, s.Stderr(), "context deadline exceeded")
}

func TestTheWatchdogThatBitesFirstIsTheCause(t *testing.T) {
	for _, bite := range []string{"health: ", "heartbeat: "} {
		t.Run(bite, func(t *testing.T) {
			dir := t.TempDir() + "/dir"
			require.NoError(t, os.Mkdir(dir, 0o700))
			p := newPatient(t)
			s := start(t, stubborn, "-health", p.URL, "-beat", dir+"/beat", "-every", quick)
			if bite == "health: " {
				p.from(func(_ int, w http.ResponseWriter, _ *http.Request) { sick(w) })
			} else { // it cannot be looked at
				require.NoError(t, os.Remove(dir))
				require.NoError(t, os.WriteFile(dir, nil, 0o600))
			}
			assert.Equal(t, statusWatchdog, s.end())
			assert.Contains(t, s.Stderr(), "SIGTERM: async: watchdog of the command: "+bite)
			assert.Equal(t, 2, strings.Count(s.Stderr(), "watchdog of")) // at TERM, and in the end
		})
	}
}

func TestHeartbeat(t *testing.T) {
	ctx := t.Context()
	file := filepath.Join(t.TempDir(), "beat")
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }

	assert.NoError(t, heartbeat(file, time.Hour, ago(time.Minute))(ctx), "not there yet")
	assert.ErrorContains(t, heartbeat(file, time.Hour, ago(2*time.Hour))(ctx), "was not touched for 2h0m0s", "never there")

	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.NoError(t, heartbeat(file, time.Hour, ago(3*time.Hour))(ctx))
	require.NoError(t, os.Chtimes(file, time.Time{}, ago(2*time.Hour)))
	assert.ErrorContains(t, heartbeat(file, time.Hour, ago(3*time.Hour))(ctx), "was not touched for 2h0m0s")
	assert.NoError(t, heartbeat(file, time.Hour, ago(time.Minute))(ctx), "an old file of another run")
	assert.ErrorContains(t, heartbeat(file+"/no", time.Hour, ago(0))(ctx), "not a directory")
}
