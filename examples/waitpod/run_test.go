package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/examples/internal/clitest"
)

// The server asks to be left alone for an hour. Nobody can wait that long.
func TestSignalEndsALongWait(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals there")
	}
	for sig, status := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			_, _ = fmt.Fprint(w, `{"status": {"phase": "Pending", "reason": "Unschedulable"}}`)
		}))
		defer server.Close()
		p := clitest.Start(t, nil, "waitpod", "-v", "-timeout", "24h", server.URL+"/pod")
		p.WaitFor("Pending (Unschedulable)")
		p.WaitForStderr("the server asks to wait for 1h0m0s")
		p.Signal(sig)
		assert.Equal(t, status, p.Wait())
		assert.Contains(t, p.Stderr(), "waitpod: stopped by signal: "+sig.String()+"; last phase: Pending (Unschedulable); requests: 1\n")
	}
}

func TestSignalEndsARequest(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals there")
	}
	asked, gone := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		defer close(gone)
		close(asked)
		<-r.Context().Done()
	}))
	defer server.Close()
	p := clitest.Start(t, nil, "waitpod", "-request-timeout", "24h", "-timeout", "24h", server.URL)
	<-asked
	p.Signal(os.Interrupt)
	assert.Equal(t, 130, p.Wait())
	<-gone
	assert.Equal(t, "waitpod: stopped by signal: interrupt; no phase was seen; requests: 1\n", p.Stderr())
}

// A pod that fails, over a real connection.
func TestPodThatFails(t *testing.T) {
	phases := make(chan string, 2)
	phases <- "Pending"
	phases <- "Failed"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/api/v1/namespaces/ci/pods/build", r.URL.Path)
		_, _ = fmt.Fprintf(w, `{"kind": "Pod", "status": {"phase": %q}}`, <-phases)
	}))
	defer server.Close()
	p := clitest.Start(t, nil, "waitpod", "-interval", "1ms", server.URL+"/api/v1/namespaces/ci/pods/build")
	assert.Equal(t, 1, p.Wait())
	assert.Equal(t, "Pending\nFailed\n", p.Stdout())
	assert.Equal(t, "waitpod: the pod has ended; last phase: Failed; requests: 2\n", p.Stderr())
}

// What the server says is a line on stdout, whatever it says, and part of one on
// stderr.
func TestWordsOfTheServerAreQuoted(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	answers := []string{
		`{"status": {"phase": "Pen\n\u001b[31mding", "reason": "B\u0007"}}`,
		`{"status": {"phase": "` + long + `"}}`,
		`{"status": {"phase": "Käse", "reason": "Größe"}}`,
	}
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := int(asked.Add(1))
		if n <= len(answers) {
			_, _ = io.WriteString(w, answers[n-1])
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		code := 404
		if n == len(answers)+1 {
			code = 503
		}
		_, _ = fmt.Fprintf(rw, "HTTP/1.1 %d \x1b[31m evil\r\nContent-Length: 0\r\n\r\n", code)
		_ = rw.Flush()
		_ = conn.Close()
	}))
	defer server.Close()
	p := clitest.Start(t, nil, "waitpod", "-v", "-interval", "1ms", server.URL)
	assert.Equal(t, 1, p.Wait())
	assert.Equal(t, `"Pen\n\x1b[31mding" ("B\a")`+"\n"+long[:200]+"...\nKäse (Größe)\n", p.Stdout())
	assert.Equal(t, `waitpod: "503 \x1b[31m evil"; asking again`+"\n"+
		`waitpod: "404 \x1b[31m evil"; last phase: Käse (Größe); requests: 5`+"\n", p.Stderr())
}

// A server that is not to be trusted will not be the next time.
func TestServerThatCannotBeTrustedIsNotAskedAgain(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){"unknown": (*httptest.Server).StartTLS, "no TLS": (*httptest.Server).Start} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0) // it says as much
			start(server)
			defer server.Close()
			p := clitest.Start(t, nil, "waitpod", "-timeout", "5s", "-interval", "1ms", "https://"+server.Listener.Addr().String())
			assert.Equal(t, 1, p.Wait())
			want := map[string]string{"unknown": "failed to verify certificate: ", "no TLS": "gave HTTP response to HTTPS client"}[name]
			assert.Contains(t, p.Stderr(), want)
			assert.Contains(t, p.Stderr(), "; no phase was seen; requests: 1\n")
		})
	}
}
