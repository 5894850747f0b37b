//go:build linux

package main

import (
	"bytes"
	"context"
	"net"
	"regexp"
	"sync"
	"sync/atomic"
	"time"
)

// A proxy stands between the workers and a server, and mistreats what passes.
type proxy struct {
	listener net.Listener
	server   atomic.Pointer[string] // its socket

	down  atomic.Bool  // connections end at once
	drop  atomic.Bool  // what the server answers is thrown away, and the connection ends
	mute  atomic.Bool  // nothing passes, and nothing ends
	delay atomic.Int64 // of everything that passes, in ns
	hits  atomic.Int64 // how often one of these has met something

	// armed: the next connection on which a client says the mark ends, before or behind
	// what it says.
	armed atomic.Pointer[trap]

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// A trap waits for a mark.
type trap struct {
	mark   []byte
	behind bool          // the server hears what the client says
	sprung chan struct{} // closed when it was said
	who    string        // the name of the client; set before that
	// release, if it is not nil, is closed when the server may hear what was said; then
	// the connection does not end.
	release chan struct{}
}

func newProxy(server string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, conns: map[net.Conn]bool{}}
	p.server.Store(&server)
	go p.accept()
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", *p.server.Load())
		if err != nil || p.down.Load() {
			_ = client.Close()
			if server != nil {
				_ = server.Close()
			}
			continue
		}
		p.note(client, true)
		end := func() { // also if it ends twice
			_ = client.Close()
			_ = server.Close()
			p.note(client, false)
		}
		who := ""
		go func() {
			defer end()
			p.carry(client, server, func(b []byte, to net.Conn) bool {
				if who == "" {
					who = string(names.Find(b)) // a client begins with its name
				}
				return p.asks(who, b, to)
			})
		}()
		go func() { defer end(); p.carry(server, client, p.answers) }()
	}
}

func (p *proxy) note(c net.Conn, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open {
		p.conns[c] = true
	} else {
		delete(p.conns, c)
	}
}

// carry carries what comes from one side to the other, until pass says that the
// connection is to end.
func (p *proxy) carry(from, to net.Conn, pass func(b []byte, to net.Conn) bool) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if d := time.Duration(p.delay.Load()); d > 0 {
			p.hits.Add(1)
			time.Sleep(d)
		}
		if p.mute.Load() {
			p.hits.Add(1)
			for p.mute.Load() {
				time.Sleep(10 * time.Millisecond)
			}
			return // what was said meanwhile is lost
		}
		if p.down.Load() || !pass(b[:n], to) {
			return
		}
	}
}

// names are those of processes.
var names = regexp.MustCompile(`(worker|producer)\d+`)

func (p *proxy) asks(who string, b []byte, server net.Conn) bool {
	t := p.armed.Load()
	if t == nil || !bytes.Contains(b, t.mark) || !p.armed.CompareAndSwap(t, nil) {
		_, err := server.Write(b)
		return err == nil
	}
	t.who = who
	if t.release != nil {
		close(t.sprung)
		<-t.release
		_, err := server.Write(b)
		return err == nil
	}
	if t.behind {
		_, _ = server.Write(b)
	}
	p.down.Store(true)
	p.reset()
	close(t.sprung)
	return false
}

func (p *proxy) answers(b []byte, client net.Conn) bool {
	if p.drop.Load() {
		p.hits.Add(1)
		return false
	}
	_, err := client.Write(b)
	return err == nil
}

// reset ends all connections as a machine does that has forgotten them.
func (p *proxy) reset() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
		n++
	}
	return n
}

// during sets a flag for some time, and reports whether that has met something.
func (p *proxy) during(ctx context.Context, flag *atomic.Bool, d time.Duration) bool {
	before := p.hits.Load()
	flag.Store(true)
	rest(ctx, d)
	flag.Store(false)
	return p.hits.Load() > before
}

// outage waits for a settlement, and has the server be away for d from then on.
func (p *proxy) outage(ctx context.Context, mark string, behind bool, d time.Duration) bool {
	t := &trap{mark: []byte(mark), behind: behind, sprung: make(chan struct{})}
	p.armed.Store(t)
	defer p.down.Store(false)
	select {
	case <-t.sprung:
		rest(ctx, d)
		return true
	case <-time.After(5 * time.Second):
		return !p.armed.CompareAndSwap(t, nil)
	case <-ctx.Done():
		return false
	}
}

// hold holds the next settlement back until f, which is given the name of its sender,
// has returned. It reports whether there was one.
func (p *proxy) hold(ctx context.Context, mark string, f func(who string)) bool {
	t := &trap{mark: []byte(mark), sprung: make(chan struct{}), release: make(chan struct{})}
	defer close(t.release)
	p.armed.Store(t)
	select {
	case <-t.sprung:
		f(t.who)
		return true
	case <-time.After(5 * time.Second):
	case <-ctx.Done():
	}
	return !p.armed.CompareAndSwap(t, nil)
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
