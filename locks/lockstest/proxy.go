package lockstest

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A Proxy stands between a store and its server, on a port of the loopback interface,
// and does to the connections what networks do. Any number of goroutines may use it.
type Proxy struct {
	// Address is where it listens.
	Address string

	network, server string
	listener        net.Listener
	joined          sync.WaitGroup

	mu     sync.Mutex
	wake   chan struct{} // closed at every change
	closed bool
	silent bool          // nothing passes, and connections stay
	refuse bool          // new connections are closed at once
	delay  time.Duration // of everything that the server says
	skip   int           // so many answers pass before
	lose   int           // so many answers are lost, and their connections with them
	lost   int
	drop   func(answer []byte) bool
	words  []byte // what comes in place of a lost answer
	conns  map[net.Conn]struct{}
}

// NewProxy starts a proxy before a server. It ends with the test.
func NewProxy(t testing.TB, network, address string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{
		Address: l.Addr().String(), network: network, server: address, listener: l,
		wake: make(chan struct{}), conns: map[net.Conn]struct{}{},
	}
	p.joined.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Silence has nothing pass any more, in either direction, as a broken link does: no
// connection is closed.
func (p *Proxy) Silence() { p.change(func() { p.silent = true }) }

// Delay has everything that the server says come later by d.
func (p *Proxy) Delay(d time.Duration) { p.change(func() { p.delay = d }) }

// Lose has the next n answers be lost: what the server says, it has done, and then the
// connection ends.
func (p *Proxy) Lose(n int) { p.change(func() { p.skip, p.lose, p.words = 0, n, nil }) }

// Replace has words come in place of one answer, after so many that pass.
func (p *Proxy) Replace(after int, words []byte) {
	p.change(func() { p.skip, p.lose, p.words = after, 1, words })
}

// Drop has the answers not come of which drop says so, and their connections stay.
func (p *Proxy) Drop(drop func(answer []byte) bool) { p.change(func() { p.drop = drop }) }

// Lost returns how many answers were lost so far.
func (p *Proxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Reset ends all connections. New ones are served.
func (p *Proxy) Reset() { p.change(p.endAll) }

// Refuse ends all connections, and new ones too.
func (p *Proxy) Refuse() { p.change(func() { p.refuse = true; p.endAll() }) }

// Heal has everything pass again. Connections that were silent are ended, as a link that
// was broken for long leaves none alive.
func (p *Proxy) Heal() {
	p.change(func() {
		if p.silent {
			p.endAll()
		}
		p.silent, p.refuse, p.delay, p.lose = false, false, 0, 0
	})
}

func (p *Proxy) endAll() {
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *Proxy) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.wake)
	p.wake = make(chan struct{})
}

func (p *Proxy) close() {
	p.change(func() { p.closed = true; p.endAll() })
	_ = p.listener.Close()
	p.joined.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.joined.Go(func() { p.serve(client) })
	}
}

// keep notes a connection, so that it can be ended from outside.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.refuse {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) forget(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) serve(client net.Conn) {
	defer p.forget(client)
	if !p.keep(client) || !p.pass(client) {
		return
	}
	server, err := net.DialTimeout(p.network, p.server, 5*time.Second)
	if err != nil {
		return
	}
	defer p.forget(server)
	if !p.keep(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copy(server, client, false) })
	both.Go(func() { p.copy(client, server, true) })
	both.Wait()
}

// copy carries bytes until one end closes. answers says that they come from the server.
func (p *Proxy) copy(to, from net.Conn, answers bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !p.pass(from) {
				return
			}
			if words, lost := p.loses(answers); lost {
				_, _ = to.Write(words)
				return
			}
			if answers && p.drops(buffer[:n]) {
				continue
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits as long as the network is silent, or slow. It says false if the proxy ends.
func (p *Proxy) pass(c net.Conn) bool {
	p.mu.Lock()
	delay := p.delay
	for p.silent && !p.closed {
		wake := p.wake
		_, alive := p.conns[c]
		p.mu.Unlock()
		if !alive {
			return false
		}
		<-wake
		p.mu.Lock()
	}
	closed := p.closed
	p.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	return !closed
}

func (p *Proxy) drops(answer []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drop != nil && p.drop(answer)
}

// loses says whether what comes from the server is lost, and what comes in its place.
func (p *Proxy) loses(answers bool) (words []byte, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !answers || p.lose == 0 {
		return nil, false
	}
	if p.skip > 0 {
		p.skip--
		return nil, false
	}
	p.lose--
	p.lost++
	return p.words, true
}
