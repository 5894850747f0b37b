package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A logServer serves a file that grows.
type logServer struct {
	file *os.File
	over func() bool // whether it grows no more
}

// block is what an answer begins at a multiple of, as that of a server does that knows
// blocks or lines: what the client has already, it gets again.
const block = 64

func (s *logServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var at int64
	_, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &at)
	if info, e := s.file.Stat(); err != nil || e != nil || at > info.Size() {
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		return
	}
	at -= at % block
	w.Header().Set("Log-Offset", fmt.Sprint(at))
	w.WriteHeader(http.StatusPartialContent)
	for buf := make([]byte, 4096); ; {
		over := s.over() // before the read: what is not there by now will not come
		n, _ := s.file.ReadAt(buf, at)
		at += int64(n)
		switch {
		case n > 0:
			_, _ = w.Write(buf[:n])
			_ = http.NewResponseController(w).Flush()
		case over:
			return
		default:
			if async.Sleep(r.Context(), 10*time.Millisecond) != nil {
				panic(http.ErrAbortHandler) // to return would say that the log is over
			}
		}
	}
}

// A brittleListener accepts connections that break after some bytes. Where depends on
// the mean alone.
type brittleListener struct {
	net.Listener
	rand *rand.Rand // used by Accept alone, which one goroutine calls
	mean int        // bytes, on average; 0: they do not break
}

func (l *brittleListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil || l.mean == 0 {
		return conn, err
	}
	return &brittleConn{conn, l.rand.IntN(2 * l.mean)}, nil
}

// A brittleConn breaks in the middle of a Write. One goroutine writes.
type brittleConn struct {
	net.Conn
	left int // bytes until it breaks
}

func (c *brittleConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p[:min(len(p), c.left)])
	if c.left -= n; n < len(p) {
		_ = c.Close()
		err = errors.New("the connection was cut")
	}
	return n, err
}
