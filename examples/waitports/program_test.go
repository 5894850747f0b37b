//go:build unix

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

// reserve returns an address that stays closed, and nobody else's, until the test
// listens there: a socket is bound to it that does not listen.
func reserve(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	require.NoError(t, syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// column is one column of the report that p has printed.
func column(p *clitest.Process, n int) (column []string) {
	for _, line := range strings.Split(strings.TrimSpace(p.Stdout()), "\n")[1:] {
		column = append(column, strings.Fields(line)[n])
	}
	return column
}

func TestPortThatOpensLateIsWaitedFor(t *testing.T) {
	late, up := reserve(t), listen(t, "127.0.0.1:0").Addr().String()
	p := clitest.Start(t, nil, "waitports", "-v", "late="+late+"@1m", "up="+up, "never="+reserve(t)+"@200ms")
	p.WaitForStderr("late: dial tcp " + late + ": connect: connection refused")
	p.WaitForStderr("up: up, 1 of 1")
	listen(t, late)
	assert.Equal(t, 124, p.Wait())
	assert.Equal(t, []string{"late", "up", "never"}, column(p, 0), "the order of the arguments")
	assert.Equal(t, []string{"up", "up", "down"}, column(p, 2))
	assert.Contains(t, p.Stderr(), "waitports: 2 of 3 up\n")
}

func TestAnyDoesNotWaitForTheRest(t *testing.T) {
	late := reserve(t)
	p := clitest.Start(t, nil, "waitports", "-v", "-any", "-timeout", "24h", "never="+reserve(t), "late="+late)
	p.WaitForStderr("never: dial")
	p.WaitForStderr("late: dial")
	listen(t, late)
	assert.Equal(t, 0, p.Wait())
	assert.Equal(t, []string{"unneeded", "up"}, column(p, 2))
}

// The wait is stopped in an hour's pause, in a request and between two dials. The state so far is
// reported.
func TestSignalStopsTheWaitAndReports(t *testing.T) {
	pending := `{"status": {"phase": "Pending", "reason": "Unschedulable"}}`
	pod, _ := api(t, "later "+pending)
	hanging, asked := api(t, "hang")
	for _, mode := range []string{"-any=false", "-any"} {
		clitest.Signals(t, func(t *testing.T, sig syscall.Signal, status int) {
			before := asked.Load()
			p := clitest.Start(t, nil, "waitports", mode, "-v", "-timeout", "24h", "a="+reserve(t), "pod="+pod, "c="+hanging)
			p.WaitForStderr("a: dial")
			p.WaitForStderr(`pod: "Pending Unschedulable"`)
			clitest.Eventually(t, "a request", func() bool { return asked.Load() > before })
			p.Signal(sig)
			assert.Equal(t, status, p.Wait())
			assert.Equal(t, []string{"stopped", "stopped", "stopped"}, column(p, 2))
			assert.Contains(t, p.Stdout(), `not asked any longer; last phase: "Pending Unschedulable"`)
			assert.Contains(t, p.Stderr(), "waitports: stopped by signal: "+sig.String()+"\n")
		})
	}
}

// Answers of an API, in turn; the last one is repeated.
func api(t *testing.T, answers ...string) (url string, asked *atomic.Int64) {
	asked = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := answers[min(int(asked.Add(1)), len(answers))-1]
		switch head, rest, _ := strings.Cut(answer, " "); head {
		case "redirect":
			w.Header().Set("Location", rest)
			w.WriteHeader(http.StatusFound)
		case "hang":
			<-r.Context().Done()
		case "later":
			w.Header().Set("Retry-After", "3600")
			_, _ = io.WriteString(w, rest)
		case "half":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"status": {"pha`)
		case "raw":
			conn, rw, err := http.NewResponseController(w).Hijack()
			if assert.NoError(t, err) {
				_, _ = fmt.Fprintf(rw, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", rest)
				_ = rw.Flush()
				_ = conn.Close()
			}
		default:
			_, _ = io.WriteString(w, answer)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/api/v1/namespaces/ci/pods/build", asked
}

func phase(s string) string { return `{"kind": "Pod", "status": {"phase": "` + s + `"}}` }

// A trouble that may pass is waited for, any other ends the wait of that pod at once.
func TestPodIsWaitedFor(t *testing.T) {
	pulling := `{"status": {"phase": "Pending", "containerStatuses": [{"state": {}}, {"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}}`
	for _, test := range []struct {
		answers []string
		status  int
		want    string
	}{
		{[]string{phase("Pending"), pulling, "raw 503 busy", "raw 429 slow", "raw 408 late", "half", phase("Running")}, 0, ` up `},
		{[]string{phase("Pending"), phase("Failed")}, 1, `the pod has ended: "Failed"`},
		{[]string{phase("Succeeded")}, 1, `the pod has ended: "Succeeded"`},
		{[]string{"raw 404 Not Found"}, 1, `"404 Not Found"`},
		{[]string{"redirect /login"}, 1, `"302 Found"`},
		{[]string{"<html>"}, 1, `the answer is not a pod`},
		{[]string{"{}"}, 1, `the answer is not a pod`},
		{[]string{"raw 500 \x1b[31mevil", `{"status": {"phase": "Pen\n\u001b[31mding"}}`, "raw 404 \x1b[31mgone"}, 1, `"404 \x1b[31mgone"`},
	} {
		url, asked := api(t, test.answers...)
		p := clitest.Start(t, nil, "waitports", "-v", "-timeout", "1m", "-interval", "1ms", "pod="+url)
		assert.Equal(t, test.status, p.Wait(), p.Stderr())
		assert.Contains(t, p.Stdout(), test.want)
		assert.EqualValues(t, len(test.answers), asked.Load())
		assert.NotContains(t, p.Stdout()+p.Stderr(), "\x1b", "a terminal would take it for a command")
	}
}

// The run in the README is one of the program: with other times, and nothing else.
func TestTheRunInTheREADME(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, run, ok := strings.Cut(string(text), "```\n$ ")
	require.True(t, ok)
	run, _, _ = strings.Cut(run, "```")
	command, want, _ := strings.Cut(run, "\n")
	address := listen(t, "127.0.0.1:0").Addr().String()
	script := "exec " + strings.ReplaceAll(command, "127.0.0.1:8000", address)
	out, err := exec.Command("bash", "-c", script+" 2>&1").Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 124, exit.ExitCode())
	assert.Equal(t, plain(want), plain(strings.ReplaceAll(string(out), address, "127.0.0.1:8000")))
}

// plain is a run without its times, numbers and spaces.
func plain(run string) string {
	run = regexp.MustCompile(`(?m)  [0-9.]+m?s +\d+`).ReplaceAllString(run, " TIME ATTEMPTS ")
	return strings.TrimSpace(regexp.MustCompile(`(?m) +$| +`).ReplaceAllString(run, " "))
}
