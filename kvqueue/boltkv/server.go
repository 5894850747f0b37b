package boltkv

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/usersocket"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/local"
)

// A server serves a store on a socket.
type server struct {
	store    *local.Store
	listener net.Listener
	remove   func() // the socket
	group    *async.Group
}

// serve serves a store on the socket at path. A socket that is there is one of a process that
// has ended: who calls this has the file.
func serve(path string, s *local.Store) (*server, error) {
	l, remove, err := usersocket.Listen(path)
	if err != nil {
		return nil, err
	}
	v := &server{store: s, listener: l, remove: remove, group: async.NewGroup(context.Background(), async.Name("boltkv: "+path))}
	_ = v.group.Go(func(ctx context.Context) error { v.accept(ctx); return nil }, async.Name("boltkv: accept"))
	return v, nil
}

// close ends all connections, and waits for what is being served.
func (v *server) close() error {
	v.remove()
	err := v.listener.Close()
	_ = v.group.Stop(context.Background(), kvqueue.ErrClosed)
	return err
}

func (v *server) accept(ctx context.Context) {
	for {
		conn, err := v.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // such as no file left for a connection
			if async.Sleep(ctx, 100*time.Millisecond) != nil {
				return
			}
			continue
		}
		if v.group.Go(func(ctx context.Context) error { v.connection(ctx, conn); return nil }) != nil {
			_ = conn.Close()
		}
	}
}

// A peer is one connection.
type peer struct {
	store *local.Store
	conn  net.Conn

	mu      sync.Mutex // one answer at a time; held while it is written
	out     *gob.Encoder
	watches map[uint64]context.CancelFunc // by request
}

// connection serves one connection until it ends, or ctx does.
func (v *server) connection(ctx context.Context, conn net.Conn) {
	p := &peer{store: v.store, conn: conn, out: gob.NewEncoder(conn), watches: map[uint64]context.CancelFunc{}}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	in := gob.NewDecoder(bufio.NewReader(conn))
	var h hello
	if in.Decode(&h) != nil || p.out.Encode(hello{protocol, v.store.Limits()}) != nil || h.Protocol != protocol {
		return
	}
	_ = async.Scope(ctx, func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx) // ends watches with the connection
		defer stop()
		for {
			r := new(request)
			if err := in.Decode(r); err != nil {
				return nil
			}
			p.request(ctx, r)
		}
	})
}

// request has a request served by a task of its own.
func (p *peer) request(ctx context.Context, r *request) {
	switch r.Op {
	case opForget:
		p.mu.Lock()
		defer p.mu.Unlock()
		if stop := p.watches[r.ID]; stop != nil {
			stop()
		}
	case opWatch:
		ctx, stop := context.WithCancel(ctx)
		p.mu.Lock()
		p.watches[r.ID] = stop
		p.mu.Unlock()
		async.Go(ctx, func(ctx context.Context) error {
			p.watch(ctx, r)
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.watches, r.ID)
			stop()
			return nil
		}, async.Name("boltkv: watch"))
	default:
		async.Go(ctx, func(ctx context.Context) error {
			a := &answer{ID: r.ID}
			a.Fault = faultOf(p.do(ctx, r, a))
			p.send(a)
			return nil
		}, async.Name("boltkv: request"))
	}
}

// send sends an answer. A connection that does not take it is at its end.
func (p *peer) send(a *answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out.Encode(a) != nil {
		_ = p.conn.Close()
	}
}

// watch answers with one change after another, and at the end with an error.
func (p *peer) watch(ctx context.Context, r *request) {
	var last error
	for e, err := range p.store.Watch(ctx, r.After, r.Prefixes...) {
		if err != nil {
			last = err
			break
		}
		p.send(&answer{ID: r.ID, Event: &e})
	}
	if last != nil {
		p.send(&answer{ID: r.ID, Fault: faultOf(last)})
	}
}

// do does a request that has one answer.
func (p *peer) do(ctx context.Context, r *request, a *answer) (err error) {
	switch r.Op {
	case opRead:
		a.Results, a.Rev, err = p.store.Read(ctx, r.Ranges...)
	case opCommit:
		a.Rev, err = p.store.Commit(ctx, r.Guards, p.writes(r.Writes))
	case opSession:
		var s kvqueue.Session
		if s, err = p.store.Session(ctx, r.TTL); err == nil {
			a.Session = s.ID()
		}
	default:
		s, found := local.Find(p.store, r.Session)
		switch {
		case r.Op == opRenew && found:
			err = s.Renew(ctx)
		case r.Op == opRenew:
			err = kvqueue.ErrSessionLost
		case found:
			err = s.End(ctx)
		}
	}
	return err
}

func (p *peer) writes(of []write) []kvqueue.Write {
	writes := make([]kvqueue.Write, len(of))
	for i, w := range of {
		writes[i] = kvqueue.Write{Key: w.Key, Value: w.Value, Delete: w.Delete}
		if w.Session == 0 {
			continue
		}
		if s, found := local.Find(p.store, w.Session); found {
			writes[i].Session = s
		} else {
			writes[i].Session = ended(w.Session)
		}
	}
	return writes
}

// An ended session is one that the store does not know any more. It refuses a transaction
// that puts a key with it.
type ended int64

func (e ended) ID() int64                 { return int64(e) }
func (ended) Renew(context.Context) error { return kvqueue.ErrSessionLost }
func (ended) End(context.Context) error   { return nil }
