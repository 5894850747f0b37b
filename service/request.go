package service

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"

	"github.com/ambit-go/ambit/async"
)

// This file is what a server of HTTP has to do with each request and connection.

// connKey is the key under which the ctx of a request shows its connection.
type connKey struct{}

// withConn is the ConnContext of the server.
func (h *httpServer) withConn(next func(context.Context, net.Conn) context.Context) func(context.Context, net.Conn) context.Context {
	return func(ctx context.Context, conn net.Conn) context.Context {
		if next != nil {
			ctx = next(ctx, conn)
		}
		if ctx == nil {
			return nil // the server panics, and says why
		}
		return context.WithValue(ctx, connKey{}, conn) // last: next may give a ctx without our values
	}
}

// watchHijacks is the ConnState of the server.
func (h *httpServer) watchHijacks(next func(net.Conn, http.ConnState)) func(net.Conn, http.ConnState) {
	return func(conn net.Conn, state http.ConnState) {
		if state == http.StateHijacked {
			h.hijack(conn)
		}
		if next != nil {
			next(conn, state)
		}
	}
}

// hijack notes that a handler has taken conn.
func (h *httpServer) hijack(conn net.Conn) {
	h.mu.Lock()
	h.hijacked[conn] = struct{}{}
	closed := h.closed
	h.mu.Unlock()
	if closed {
		_ = conn.Close()
	}
}

// errHandlerExits is what a handler has done that has neither returned nor panicked.
var errHandlerExits = errors.New("its handler has called runtime.Goexit: what it had not written by then is lost")

// scoped is the Handler of the server: it handles each request in a scope of its
// own.
func (h *httpServer) scoped(next http.Handler) http.Handler {
	if next == nil {
		next = http.DefaultServeMux
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.enter() {
			panic(http.ErrAbortHandler) // its connection is closed
		}
		defer h.leave(r)
		err := errHandlerExits // unless it returns, or panics
		defer func() {
			if value := recover(); value != nil {
				panic(value) // net/http tells of it
			}
			if err != nil && !onlyStopped(err) {
				h.logf("service: %s: %v", nameOf(r), err)
			}
		}()
		err = h.handle(next, w, r)
	})
}

// handle handles a request in a scope, and returns what that does.
func (h *httpServer) handle(next http.Handler, w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	if memberOf(ctx) == nil {
		ctx = request{ctx, h.ctx}
	}
	return async.Scope(ctx, func(ctx context.Context) error {
		own := r.WithContext(ctx)
		defer func() { r.MultipartForm = own.MultipartForm }() // whose files the server removes
		next.ServeHTTP(w, own)
		return nil
	}, async.Name(nameOf(r)))
}

// nameOf names a request in logs and among tasks. A path with a line break in it stays on
// one line.
func nameOf(r *http.Request) string { return r.Method + " " + r.URL.EscapedPath() }

// A request is the ctx of a request where BaseContext is not ours: the handler belongs
// to the service all the same.
type request struct {
	context.Context
	service context.Context
}

func (r request) Value(key any) any {
	if v := r.Context.Value(key); v != nil {
		return v
	}
	return r.service.Value(key)
}

// onlyStopped reports whether a scope that has returned err was stopped and no more:
// its client has gone, say.
func onlyStopped(err error) bool {
	list, ok := err.(*async.ScopeError)
	return ok && list.Cause != nil && len(list.Errors) == 0 && list.Dropped == 0
}

// enter counts a handler in; false if it is too late for one.
func (h *httpServer) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.handlers++
	return true
}

// leave counts a handler out. A connection that the handler has hijacked is not ours any more.
func (h *httpServer) leave(r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.hijacked) > 0 {
		if conn, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			delete(h.hijacked, conn)
		}
	}
	if h.handlers--; h.handlers == 0 && h.idle != nil {
		close(h.idle)
		h.idle = nil
	}
}

// logf writes to the log of the server.
func (h *httpServer) logf(format string, args ...any) {
	if h.s.ErrorLog != nil {
		h.s.ErrorLog.Printf(format, args...)
	} else {
		log.Printf(format, args...)
	}
}
