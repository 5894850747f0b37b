//go:build unix

package main

import (
	"errors"
	"math/rand/v2"
	"net"
)

// A brittleListener accepts connections that break after some bytes, and now and
// then one that breaks before the first. Where is decided by the seed.
type brittleListener struct {
	net.Listener
	rand *rand.Rand // used by Accept alone, which one goroutine calls
	mean int        // bytes, on average
}

func newBrittleListener(ln net.Listener, mean int, seed uint64) net.Listener {
	if mean == 0 {
		return ln
	}
	return &brittleListener{ln, rand.New(rand.NewPCG(seed, 0)), mean}
}

func (l *brittleListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &brittleConn{Conn: conn, left: l.rand.IntN(2 * l.mean), reset: l.rand.IntN(2) == 0}
	if l.rand.IntN(8) == 0 {
		c.left = 0
	}
	return c, nil
}

// A brittleConn breaks in the middle of a Write. One goroutine writes.
type brittleConn struct {
	net.Conn
	left  int  // bytes until it breaks
	reset bool // and not in good order: what is under way may be lost
}

var errCut = errors.New("the connection was cut")

func (c *brittleConn) Write(p []byte) (int, error) {
	if len(p) <= c.left {
		c.left -= len(p)
		return c.Conn.Write(p)
	}
	n, err := c.Conn.Write(p[:c.left])
	c.left = 0
	if tcp, ok := c.Conn.(*net.TCPConn); ok && c.reset {
		_ = tcp.SetLinger(0)
	}
	return n, errors.Join(errCut, err, c.Close())
}
