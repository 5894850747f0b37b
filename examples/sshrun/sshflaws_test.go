//go:build unix

package main

import (
	"net"
	"sync"
)

// A flaw is what is wrong with a server.
type flaw string

// The flaws. A server with the empty one is as it should be.
const (
	// silent accepts connections and says nothing.
	silent flaw = "silent"
	// noSession lets its user in and does not answer when a session is to be
	// opened.
	noSession flaw = "no-session"
	// noShell opens a session and does not answer when a command is to be
	// started in it.
	noShell flaw = "no-shell"
	// cut passes on the beginning of a long script and hangs up when the shell
	// has ended on that.
	cut flaw = "cut"
	// ignoreSignals drops requests to send a signal.
	ignoreSignals flaw = "ignore-signals"
	// deaf reads nothing any more once the command prints something.
	deaf flaw = "deaf"
	// stalled reads nothing any more once the command has started.
	stalled flaw = "stalled"
	// noEnd never says that the command has ended.
	noEnd flaw = "no-end"
	// hangUp ends the connection when the command has ended, and does not say
	// how it did.
	hangUp flaw = "hang-up"
)

// A line is a connection that can be made deaf: reads then block until it is
// closed.
type line struct {
	net.Conn
	mu     sync.Mutex
	deaf   bool
	closed chan struct{} // by the first Close
	once   sync.Once
}

func newLine(conn net.Conn, flaw flaw) *line {
	if tcp, ok := conn.(*net.TCPConn); ok && flaw == stalled {
		_ = tcp.SetReadBuffer(4 << 10) // so that the client is soon blocked
	}
	return &line{Conn: conn, closed: make(chan struct{})}
}

// deafen has all that is read from now on thrown away unseen.
func (l *line) deafen() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deaf = true
}

// Read reads, and once the line is deaf blocks until it is closed.
func (l *line) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	l.mu.Lock()
	deaf := l.deaf
	l.mu.Unlock()
	if deaf {
		<-l.closed
		return 0, net.ErrClosed
	}
	return n, err
}

// Close closes the connection.
func (l *line) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Conn.Close()
}
