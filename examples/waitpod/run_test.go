package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
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

// What will never be any better is asked for once.
func TestRedirectsCertificatesAndEndlessAnswersAreFinal(t *testing.T) {
	redirect := http.RedirectHandler("/again", http.StatusFound)
	endless := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte(" "), maxPod+1))
	})
	for name, c := range map[string]struct {
		start func(*httptest.Server)
		h     http.Handler
		want  string
	}{
		"redirect":    {(*httptest.Server).Start, redirect, "302 Found"},
		"certificate": {(*httptest.Server).StartTLS, redirect, "failed to verify certificate"},
		"endless":     {(*httptest.Server).Start, endless, "it is longer than 4 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(c.h)
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			c.start(server)
			defer server.Close()
			p := clitest.Start(t, nil, "waitpod", server.URL)
			assert.Equal(t, 1, p.Wait())
			assert.Contains(t, p.Stderr(), c.want)
			assert.Contains(t, p.Stderr(), "requests: 1")
		})
	}
}
