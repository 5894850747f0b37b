package service

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ambit-go/ambit/async"
)

// HTTP returns a service that serves HTTP on l, which the caller has opened.
//
//	l, err := net.Listen("tcp", ":8080") // a port that is taken is the first error
//	err = service.Run(ctx, []service.Service{service.HTTP("http", l, &http.Server{Handler: handler})})
//
// # Details
//
// The address is known to be free before anything is started, and the service is ready as
// soon as it runs. The service takes over l, which is closed in the end in any case, and
// s: it wraps the Handler, ConnContext and ConnState of s and, if that is nil, sets
// BaseContext. One server is for one service, which runs once: the second time it fails,
// so [async.Restart] has no effect. A nil l or s panics. For TLS pass the listener that
// [crypto/tls.NewListener] makes, with "h2" among its NextProtos for HTTP/2.
//
// Each request is handled in a scope of its own, which is the ctx of the request: what
// the handler starts with it is joined before the handler is left, and an error that is
// left of it is written to the ErrorLog of s, and so is a Goexit. The ctx has the values
// of the ctx of [Run] and lives on while the service is drained, for [IsReady] and all
// else here; with a BaseContext of your own it has the values, and the end, of that.
//
// Level 1 is Shutdown: no new connections, idle ones are closed, requests go on to their
// ends, and the service waits for each handler, those of hijacked connections, too; they
// may look at [Draining]. A connection that has sent nothing yet is waited for, until it
// is 5 s old; net/http answers no request that comes on it now, and its client meets EOF.
// Level 2 cancels the requests, closes all connections, hijacked ones whose handler runs
// included, and waits for the handlers. Tasks that a handler has left running on a
// hijacked connection are not waited for.
//
// An end of the server that nobody has asked for, also with [http.ErrServerClosed], is a
// failure: the others are drained, and so are the requests that this server has.
func HTTP(name string, l net.Listener, s *http.Server) Service {
	if l == nil || s == nil {
		panic("service: HTTP with a nil listener or server: open the one, and set the Handler of the other")
	}
	h := &httpServer{l: l, s: s, shut: make(chan struct{}), hijacked: map[net.Conn]struct{}{}}
	return Service{Name: name, Run: h.run, Drain: h.drain, unused: func() { _ = l.Close() }}
}

// An httpServer is a server that is run as a service.
type httpServer struct {
	l net.Listener
	s *http.Server

	ctx      context.Context // of all requests
	ran      atomic.Bool     // run was called
	asked    atomic.Bool     // we have told it to stop
	shut     chan struct{}   // closed when Shutdown has returned
	shutOnce sync.Once

	mu       sync.Mutex
	handlers int                   // that run
	idle     chan struct{}         // closed by the last of them; nil: nobody waits for it
	hijacked map[net.Conn]struct{} // those whose handlers run
	closed   bool                  // level 2 has come, or run has ended: no handler starts any more
}

// errRan is what the second call of run returns: net/http would say that the server is
// closed, which is what a stop looks like.
var errRan = errors.New("its server has run before: make a server and a service for each Run")

// run serves.
func (h *httpServer) run(ctx context.Context) error {
	if h.ran.Swap(true) {
		return async.Final(errRan)
	}
	// Cancelled requests see why: so they are cancelled before their connections are
	// closed, which cancels them, too.
	requests, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	h.takeOver(requests)
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		cancel(context.Cause(ctx))
		h.close()
	})
	defer func() {
		if stop() {
			h.close()
			cancel(nil)
		} else {
			<-over
		}
	}()
	Ready(ctx)
	err := h.served(ctx, h.s.Serve(h.l))
	h.join(nil)
	return err
}

// served is called when Serve has returned with err. It waits until the server is shut:
// when that begins, Serve returns.
func (h *httpServer) served(ctx context.Context, err error) error {
	m := memberOf(ctx)
	switch {
	case h.asked.Load() || ctx.Err() != nil:
		err = nil
	case m == nil: // not below Run
		h.close()
		return err
	case !m.fail(err): // else it is drained now, with the others
		err = nil
	}
	select {
	case <-h.shut:
	case <-ctx.Done():
	}
	return err
}

// join waits for the handlers, but no longer than until is closed; nil: as long as they
// take.
func (h *httpServer) join(until <-chan struct{}) {
	h.mu.Lock()
	if h.handlers == 0 {
		h.mu.Unlock()
		return
	}
	if h.idle == nil {
		h.idle = make(chan struct{})
	}
	idle := h.idle
	h.mu.Unlock()
	select {
	case <-idle:
	case <-until:
	}
}

// drain is level 1.
func (h *httpServer) drain(ctx context.Context) error {
	h.asked.Store(true)
	defer h.shutOnce.Do(func() { close(h.shut) })
	err := h.s.Shutdown(ctx)
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		return nil
	}
	if err != nil { // of closing the listener. To fail cancels handlers of hijacked connections
		h.join(ctx.Done())
	}
	return err
}

// close is level 2, or comes after the end. A connection may take its time to
// close, TLS says goodbye to the other side: so hijacked ones are first, of which the
// server does not know.
func (h *httpServer) close() {
	h.asked.Store(true)
	h.mu.Lock()
	h.closed = true
	hijacked := slices.Collect(maps.Keys(h.hijacked))
	h.mu.Unlock()
	for _, conn := range hijacked {
		_ = conn.Close()
	}
	_ = h.s.Close()
}

// takeOver has the requests of the server belong to ctx.
func (h *httpServer) takeOver(ctx context.Context) {
	h.ctx = ctx
	if h.s.BaseContext == nil {
		h.s.BaseContext = func(net.Listener) context.Context { return h.ctx }
	}
	h.s.ConnContext = h.withConn(h.s.ConnContext)
	h.s.ConnState = h.watchHijacks(h.s.ConnState)
	h.s.Handler = h.scoped(h.s.Handler)
}
