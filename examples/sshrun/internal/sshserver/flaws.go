//go:build unix

package sshserver

import (
	"net"
	"sync"
)

// A Flaw is what is wrong with a server.
type Flaw string

// The flaws. A server with the empty one is as it should be.
const (
	// Silent accepts connections and says nothing.
	Silent Flaw = "silent"
	// NoSession lets its user in and does not answer when a session is to be
	// opened.
	NoSession Flaw = "no-session"
	// NoShell opens a session and does not answer when a command is to be
	// started in it.
	NoShell Flaw = "no-shell"
	// Cut passes on the beginning of a long script and hangs up when the shell
	// has ended on that.
	Cut Flaw = "cut"
	// IgnoreSignals drops requests to send a signal.
	IgnoreSignals Flaw = "ignore-signals"
	// Deaf reads nothing any more once the command prints something.
	Deaf Flaw = "deaf"
	// Stalled reads nothing any more once the command has started.
	Stalled Flaw = "stalled"
	// NoEnd never says that the command has ended.
	NoEnd Flaw = "no-end"
	// HangUp ends the connection when the command has ended, and does not say
	// how it did.
	HangUp Flaw = "hang-up"
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

func newLine(conn net.Conn, flaw Flaw) *line {
	if tcp, ok := conn.(*net.TCPConn); ok && flaw == Stalled {
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
