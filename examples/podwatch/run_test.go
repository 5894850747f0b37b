//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"podwatch": main})
}

// An api is the API of a cluster with one pod.
type api struct {
	mu     sync.Mutex
	status int
	pod    string
	looks  int
}

const well = `{"metadata": {"uid": "1"}, "status": {"phase": "Running", "containerStatuses": [{"name": "build", "restartCount": 0}]}}`

func (a *api) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looks++
	w.WriteHeader(a.status)
	fmt.Fprint(w, a.pod)
}

// set says what is answered from now on, and returns how often the server was asked before.
func (a *api) set(status int, pod string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status, a.pod = status, pod
	return a.looks
}

// asked waits until the server was asked n times more.
func (a *api) asked(t *testing.T, since, n int) {
	clitest.Eventually(t, "more looks", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.looks >= since+n
	})
}

// start runs a script under the watchdog.
func start(t *testing.T, a *api, script string, flags ...string) *clitest.Process {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	args := append([]string{"-pod", server.URL + "/api/v1/namespaces/ci/pods/job-1", "-every", "5ms", "-grace", "1m"}, flags...)
	return clitest.Start(t, nil, "podwatch", append(args, "--", "bash", "-c", script)...)
}

const forever = `echo pid $$; trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done`

// Each way to lose a pod ends the command, with its group, and is told.
func TestAPodThatIsLostEndsTheCommand(t *testing.T) {
	for want, answer := range map[string]struct {
		status int
		pod    string
	}{
		"the pod is gone": {http.StatusNotFound, ""},
		`the pod is "Failed Evicted": "too much disk"`:         {200, `{"metadata": {"uid": "1"}, "status": {"phase": "Failed", "reason": "Evicted", "message": "too much disk"}}`},
		"the pod is another one of the same name":              {200, `{"metadata": {"uid": "2"}, "status": {"phase": "Running"}}`},
		"the pod is being deleted":                             {200, `{"metadata": {"uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}}`},
		`container "build" of the pod was started anew`:        {200, `{"metadata": {"uid": "1"}, "status": {"phase": "Running", "containerStatuses": [{"name": "build", "restartCount": 1}]}}`},
		`the server does not show the pod: "401 Unauthorized"`: {http.StatusUnauthorized, ""},
		`no answer about the pod: "500 Internal Server Error"`: {http.StatusInternalServerError, ""},
		`no answer about the pod: unexpected EOF`:              {200, `{"metadata": {`},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			a := &api{status: 200, pod: well}
			p := start(t, a, forever)
			p.WaitFor("ready")
			a.set(answer.status, answer.pod)
			assert.Equal(t, 3, p.Wait(), p.Stderr())
			assert.Contains(t, p.Stderr(), want)
			assert.Contains(t, p.Stderr(), "exit status 7", "how the command has ended is told, too")
			assert.Empty(t, clitest.InGroup(t, clitest.Number(t, p.Stdout(), "pid")))
		})
	}
}

// A server that is away for some looks ends nothing; what counts is how many in a row.
func TestAServerThatRestartsEndsNothing(t *testing.T) {
	a := &api{status: 200, pod: well}
	dir := t.TempDir()
	p := start(t, a, "echo ready; until [ -e "+dir+"/done ]; do sleep 0.01; done; exit 5", "-tolerate", "1000000")
	p.WaitFor("ready")
	a.asked(t, a.set(http.StatusServiceUnavailable, ""), 20)
	a.asked(t, a.set(200, well), 2)
	assert.NoError(t, os.WriteFile(dir+"/done", nil, 0o600))
	assert.Equal(t, 5, p.Wait(), p.Stderr())
}

// No pod, no command.
func TestNothingIsRunWithoutAPod(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusServiceUnavailable} {
		p := start(t, &api{status: status}, "echo never")
		assert.Equal(t, 3, p.Wait())
		assert.Empty(t, p.Stdout())
	}
}

func TestASignalEndsTheCommand(t *testing.T) {
	clitest.Signals(t, func(t *testing.T, sig syscall.Signal, status int) {
		p := start(t, &api{status: 200, pod: well}, forever)
		p.WaitFor("ready")
		p.Signal(sig)
		assert.Equal(t, status, p.Wait(), p.Stderr())
		assert.Empty(t, clitest.InGroup(t, clitest.Number(t, p.Stdout(), "pid")))
	})
}

func TestWrongArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"-pod", "http://127.0.0.1:1"}, {"--", "true"}} {
		p := clitest.Start(t, nil, "podwatch", args...)
		assert.Equal(t, 2, p.Wait())
		assert.Equal(t, "podwatch: name a pod, and a command behind --\n", p.Stderr())
	}
}
