//go:build unix

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/proc"
)

// A fakeEngine is an engine with one container: a script of bash, which begins when somebody attaches.
type fakeEngine struct {
	ctx    context.Context // of the container
	script string
	ends   string // how the connection ends: "" when the container does, "torn" within a frame, "never"
	deaf   bool   // it sends no signals
	tty    bool   // the container has a terminal: its output is in no frames

	pid    chan int         // of the container
	result chan proc.Result // how it has ended
}

func newFakeEngine(ctx context.Context, script string) *fakeEngine {
	return &fakeEngine{ctx: ctx, script: script, pid: make(chan int, 1), result: make(chan proc.Result, 1)}
}

func (e *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, action, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/containers/"), "/")
	switch {
	case name != "it":
		http.NotFound(w, r)
	case action == "json":
		fmt.Fprintf(w, `{"Config": {"Tty": %v}}`, e.tty)
	case action == "attach":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
		async.Go(e.ctx, func(ctx context.Context) error { e.run(ctx, conn); return nil })
	case action == "kill" && !e.deaf:
		pid := <-e.pid
		e.pid <- pid
		sig := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}[r.FormValue("signal")]
		_ = syscall.Kill(-pid, sig)
		w.WriteHeader(http.StatusNoContent)
	case action == "kill":
		<-r.Context().Done()
	case action == "wait":
		result := <-e.result
		fmt.Fprintf(w, `{"StatusCode": %d}`, result.Status())
	}
}

// run runs the container.
func (e *fakeEngine) run(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var stdout, stderr io.Writer = &stream{conn, 1}, &stream{conn, 2}
	if e.tty {
		stdout, stderr = conn, conn
	}
	result, _ := proc.Run(ctx, proc.Command{
		Args:    []string{"bash", "-c", e.script},
		Stdin:   struct{ io.Reader }{conn},
		Stdout:  stdout,
		Stderr:  stderr,
		Grace:   -1,
		Started: func(pid int) { e.pid <- pid },
	})
	e.result <- result
	switch e.ends {
	case "torn":
		_, _ = conn.Write([]byte{1, 0, 0, 0, 0, 0, 0, 9, 'l', 'o', 's', 't'})
	case "never":
		<-ctx.Done()
	}
}

// A stream makes frames of what is written.
type stream struct {
	w      io.Writer
	number byte
}

func (s *stream) Write(p []byte) (int, error) {
	head := [8]byte{0: s.number}
	binary.BigEndian.PutUint32(head[4:], uint32(len(p)))
	if _, err := s.w.Write(append(head[:], p...)); err != nil {
		return 0, err
	}
	return len(p), nil
}
