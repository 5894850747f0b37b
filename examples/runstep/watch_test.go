//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const quick = "10ms" // between two looks

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

// The third bad answer in a row is one too many: not the second, and not any
// number of them with a good one between. The abort is told which.
func TestTwoTransientFailuresAreTolerated(t *testing.T) {
	p := newPatient(t)
	s := start(t, stubborn, "-cause", "-health", p.URL, "-every", quick)
	p.from(func(n int, w http.ResponseWriter, _ *http.Request) {
		if n > 9 || n%3 != 0 { // bad, bad, well, three times, and then nothing but bad
			sick(w)
		}
	})
	assert.Equal(t, 3, s.end())
	assert.Equal(t, 12, p.times())
	cause := "async: watchdog of the command: health: " + p.URL + ": \"503 Service Unavailable\""
	assert.Equal(t, "runstep: step: SIGTERM: "+cause+"\nrunstep: step: exit status 7, stopped: "+cause+"\n", s.Stderr())
}

// With -tolerate 0 the first bad answer is one too many. Without -cause a step that has a
// status of its own keeps it, and 0 is none.
func TestNoFailureIsToleratedOnRequest(t *testing.T) {
	for own, want := range map[string]int{"7": 7, "0": 3} {
		p := newPatient(t)
		s := start(t, strings.Replace(stubborn, "7", own, 1), "-health", p.URL, "-every", quick, "-tolerate", "0")
		p.from(func(_ int, w http.ResponseWriter, _ *http.Request) { sick(w) })
		assert.Equal(t, want, s.end())
		assert.Equal(t, 1, p.times())
	}
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

// An answer that does not come is a bad one. The words of a timeout do not
// make it the command's.
func TestAnAnswerThatDoesNotComeIsTheWatchdogs(t *testing.T) {
	p := newPatient(t)
	s := start(t, stubborn, "-health", p.URL, "-every", quick, "-cause", "-answer", "300ms", "-timeout", "1h")
	p.from(func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }) // asked for no longer
	assert.Equal(t, 3, s.end())
	assert.Contains(t, s.Stderr(), "context deadline exceeded")
}

func TestTheWatchdogThatBitesFirstIsTheCause(t *testing.T) {
	for _, bite := range []string{"health: ", "heartbeat: "} {
		t.Run(bite, func(t *testing.T) {
			dir := t.TempDir() + "/dir"
			require.NoError(t, os.Mkdir(dir, 0o700))
			p := newPatient(t)
			s := start(t, stubborn, "-cause", "-health", p.URL, "-beat", dir+"/beat", "-every", quick)
			if bite == "health: " {
				p.from(func(_ int, w http.ResponseWriter, _ *http.Request) { sick(w) })
			} else { // it cannot be looked at
				require.NoError(t, os.Remove(dir))
				require.NoError(t, os.WriteFile(dir, nil, 0o600))
			}
			assert.Equal(t, 3, s.end())
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
