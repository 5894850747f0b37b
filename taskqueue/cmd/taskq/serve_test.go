package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A served is taskq serve in a process of its own.
type served struct {
	*testing.T
	cmd  *exec.Cmd
	url  string
	errs *lines
}

// lines takes down what a process writes.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func serve(t *testing.T, store string, args ...string) *served {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	s := &served{T: t, cmd: exec.Command(self, append([]string{"serve", "-json"}, args...)...), errs: new(lines)}
	s.cmd.Env = append(os.Environ(), "TASKQ_TEST=1", "TASKQ_STORE="+store)
	s.cmd.Stderr = s.errs
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, s.errs)
	var told struct{ URL string }
	require.NoError(t, json.Unmarshal([]byte(line), &told))
	s.url = told.URL
	return s
}

// get asks for a path by a host name; "": that of the URL.
func (s *served) get(at, host string) (status int, body string) {
	s.Helper()
	r, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(s.url, "/")+at, nil)
	require.NoError(s, err)
	r.Host = host
	answer, err := http.DefaultClient.Do(r)
	require.NoError(s, err)
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	require.NoError(s, err)
	return answer.StatusCode, string(b)
}

// stop stops it by a signal and returns its exit status.
func (s *served) stop(sig os.Signal) int {
	s.Helper()
	require.NoError(s, s.cmd.Process.Signal(sig))
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

func TestServeShowsTheStoreAndStopsCleanly(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "tasks")
	status, id, errs := taskq(t, store, "enqueue", "<b>hello</b>")
	require.Zero(t, status, errs)
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		s := serve(t, store, "-listen", "127.0.0.1:0")
		for _, at := range []string{"/", "/metrics", "/api", "/healthz"} {
			status, body := s.get(at, "")
			assert.Equal(t, http.StatusOK, status, "%s: %s", at, body)
		}
		_, body := s.get("/", "")
		assert.Contains(t, body, store)
		status, out, errs := taskq(t, store, "list")
		assert.Zero(t, status, errs)
		assert.Contains(t, out, strings.TrimSpace(id), "others use the file meanwhile")
		assert.Zero(t, s.stop(sig), s.errs)
		assert.Empty(t, s.errs.String())
		http.DefaultClient.CloseIdleConnections()
	}
}

func TestServeIsForThisMachineUnlessToldOtherwise(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "tasks")
	status, _, errs := taskq(t, store, "enqueue", "x")
	require.Zero(t, status, errs)
	s := serve(t, store, "-listen", "127.0.0.1:0", "-host", "tasks.example, other.example")
	for host, want := range map[string]int{
		"":                    http.StatusOK,
		"localhost":           http.StatusOK,
		"LOCALHOST:8080":      http.StatusOK,
		"[::1]:8080":          http.StatusOK,
		"tasks.example":       http.StatusOK,
		"other.example:443":   http.StatusOK,
		"attacker.example":    http.StatusMisdirectedRequest,
		"127.0.0.1.nip.io":    http.StatusMisdirectedRequest,
		"192.0.2.1":           http.StatusMisdirectedRequest,
		"localhost.attacker.": http.StatusMisdirectedRequest,
	} {
		status, body := s.get("/api", host)
		assert.Equal(t, want, status, "%q", host)
		assert.Equal(t, want == http.StatusOK, strings.Contains(body, "queues"), "%q", host)
	}
	assert.Empty(t, s.errs.String())

	open := serve(t, store, "-listen", "0.0.0.0:0")
	require.Eventually(t, func() bool { return strings.Contains(open.errs.String(), "there is no password") }, time.Minute, 5*time.Millisecond)
	_, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(open.url, "http://"), "/"))
	require.NoError(t, err)
	open.url = "http://127.0.0.1:" + port
	status, _ = open.get("/api", "tasks.example")
	assert.Equal(t, http.StatusOK, status)
}

func TestServeActsIfItIsToldTo(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "tasks")
	status, out, errs := taskq(t, store, "enqueue", "x")
	require.Zero(t, status, errs)
	id := strings.TrimSpace(out)
	for args, want := range map[string]int{"": http.StatusMethodNotAllowed, "-act": http.StatusOK} {
		s := serve(t, store, strings.Fields("-listen 127.0.0.1:0 "+args)...)
		to := s.url + "act?" + url.Values{"queue": {"default"}, "id": {id}}.Encode()
		answer, err := http.PostForm(to, url.Values{"do": {"cancel"}})
		require.NoError(t, err)
		b, err := io.ReadAll(answer.Body)
		require.NoError(t, errors.Join(err, answer.Body.Close()))
		assert.Equal(t, want, answer.StatusCode, "%s", b)
		assert.Equal(t, args != "", strings.Contains(string(b), "1 task was cancelled"))
		s.stop(syscall.SIGTERM)
	}
	open := serve(t, store, "-listen", "0.0.0.0:0", "-act")
	require.Eventually(t, func() bool { return strings.Contains(open.errs.String(), "can delete their tasks") }, time.Minute, 5*time.Millisecond)
}

func TestServeSaysWhatIsWrongWithAnAddress(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "tasks")
	status, _, errs := taskq(t, store, "enqueue", "x")
	require.Zero(t, status, errs)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	status, _, errs = taskq(t, store, "serve", "-listen", l.Addr().String())
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, "another program has it")
	status, _, errs = taskq(t, store, "serve", "-listen", "8080")
	assert.Equal(t, 2, status)
	assert.Contains(t, errs, "127.0.0.1:8080")
	_, out, _ := taskq(t, store, "serve", "-h")
	assert.Contains(t, out, "no password")
}

// A balancer is told before the page is gone.
func TestHealthSaysThatThePageStops(t *testing.T) {
	h := guard(http.NotFoundHandler(), func(string) bool { return true })
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil)) // its ctx is of no service that is ready
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Contains(t, w.Body.String(), "stopping")
}

// server starts a Redis server that wants a password, and returns its URL.
func server(t *testing.T, password string) (url string, kill func()) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	require.NoError(t, err, "make needs installs it")
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(path, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "yes", "--requirepass", password)
	require.NoError(t, cmd.Start())
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	require.Eventually(t, func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	return "unix://:" + password + "@" + socket, kill
}

func TestThePasswordOfTheStoreIsShownNowhere(t *testing.T) {
	const password = "s3cretS3cret"
	store, kill := server(t, password)
	var shown []string
	keep := func(status int, out, errs string) int {
		shown = append(shown, out, errs)
		return status
	}
	for name := range commands {
		keep(taskq(t, store, name, "-h"))
	}
	require.Zero(t, keep(taskq(t, store, "enqueue", "x")), shown)
	require.Zero(t, keep(taskq(t, store, "stats", "-store", store)))
	assert.Equal(t, 3, keep(taskq(t, store, "show", "nobody")))
	for _, bad := range []string{
		"redis://:" + password + "@127.0.0.1:1/0",
		"redis://:" + password + "@127.0.0.1:1/db",
		"redis://:" + password + "/@127.0.0.1:1/0",
		"redis://:" + password + "%zz@127.0.0.1:1/0",
		"redis://user:" + password + " @127.0.0.1:1/0",
		"redis:" + password,
		"redis://:" + password + "@127.0.0.1:1/0?no=" + "option",
		strings.Replace(store, password, "wrong"+password, 1),
		"nothing://:" + password + "@h",
	} {
		assert.NotZero(t, keep(taskq(t, bad, "stats")), bad)
		assert.NotZero(t, keep(taskq(t, store, "stats", "-store", bad)), bad)
	}
	s := serve(t, store, "-listen", "127.0.0.1:0")
	for range 2 {
		for _, at := range []string{"/", "/api", "/metrics", "/healthz"} {
			_, body := s.get(at, "")
			shown = append(shown, body)
		}
		kill()
	}
	require.Eventually(t, func() bool {
		status, body := s.get("/healthz", "")
		shown = append(shown, body)
		return status == http.StatusServiceUnavailable
	}, time.Minute, 100*time.Millisecond)
	_, body := s.get("/", "")
	assert.Contains(t, body, "The store does not answer")
	s.stop(syscall.SIGTERM)
	shown = append(shown, body, s.errs.String())
	for _, text := range shown {
		assert.False(t, strings.Contains(text, "3cret"), "%.300s", text)
	}
	assert.Contains(t, strings.Join(shown, ""), "unix://", "but which store it is")
}
