package remote

import (
	"context"
	"errors"
	"net"
	"net/rpc"
	"sync"
	"time"

	"github.com/ambit-go/ambit/internal/usersocket"
	"github.com/ambit-go/ambit/taskqueue"
)

// A Server serves a store on a socket.
type Server struct {
	listener net.Listener
	remove   func() // the socket
	rpc      *rpc.Server
	closing  context.Context // done when Close is called
	stop     context.CancelFunc

	mu     sync.Mutex
	conns  map[net.Conn]bool // nil: closed
	served sync.WaitGroup    // connections, and the one that accepts
}

// Listen serves s on the socket at path, which only this user may use. A socket that
// is there is one of a process that has ended.
func Listen(path string, s taskqueue.Store) (*Server, error) {
	l, remove, err := usersocket.Listen(path)
	if err != nil {
		return nil, err
	}
	return serveOn(l, remove, s), nil
}

// serveOn serves s to those that connect to l. remove takes the socket away.
func serveOn(l net.Listener, remove func(), s taskqueue.Store) *Server {
	v := &Server{listener: l, remove: remove, rpc: rpc.NewServer(), conns: map[net.Conn]bool{}}
	v.closing, v.stop = context.WithCancel(context.Background())
	if err := v.rpc.RegisterName("Store", &service{v.closing, s}); err != nil {
		panic(err) // it has one method of the right shape
	}
	v.served.Add(1)
	go v.accept()
	return v
}

// service is what package net/rpc calls.
type service struct {
	ctx context.Context
	s   taskqueue.Store
}

// Do does one call.
func (v *service) Do(c Call, a *Answer) error {
	serve(v.ctx, v.s, &c, a)
	return nil
}

func (v *Server) accept() {
	defer v.served.Done()
	for {
		conn, err := v.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // such as no file left for a connection
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-v.closing.Done():
				return
			}
		}
		if !v.enter(conn) {
			_ = conn.Close()
			return
		}
		go func() {
			defer v.served.Done()
			v.rpc.ServeConn(conn) // until the other side closes, or Close does; all its calls have ended then
			v.leave(conn)
		}()
	}
}

func (v *Server) enter(conn net.Conn) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.conns == nil {
		return false
	}
	v.conns[conn] = true
	v.served.Add(1)
	return true
}

func (v *Server) leave(conn net.Conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.conns, conn)
}

// Close ends all connections and waits for what is being served.
func (v *Server) Close() error {
	v.stop()
	err := v.listener.Close()
	v.remove()
	v.mu.Lock()
	for conn := range v.conns {
		_ = conn.Close()
	}
	v.conns = nil
	v.mu.Unlock()
	v.served.Wait()
	return err
}
