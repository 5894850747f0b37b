package service_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/service"
)

// TestNoAcceptedRequestIsLostByADrain has clients ask without a pause while the
// server drains: what has reached a handler is answered.
func TestNoAcceptedRequestIsLostByADrain(t *testing.T) {
	var accepted atomic.Int64
	s := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepted.Add(1)
		_ = async.Sleep(r.Context(), time.Duration(accepted.Load()%5)*time.Millisecond)
		if r.Context().Err() != nil {
			t.Error("cancelled:", context.Cause(r.Context()))
		}
		_, _ = io.WriteString(w, "done")
	})}, service.Delay(time.Millisecond), service.Grace(time.Minute))
	var answered atomic.Int64
	clients, enough := sync.WaitGroup{}, make(chan struct{}, 1000)
	for range 8 {
		client := newClient(t)
		clients.Go(func() {
			for {
				body, err := get(client, s.url)
				if err != nil {
					return // refused, or its idle connection was closed
				}
				assert.Equal(t, "done", body)
				if answered.Add(1) == 100 {
					close(enough)
				}
			}
		})
	}
	<-enough
	s.stop(errStop)
	require.NoError(t, s.wait())
	clients.Wait()
	assert.Equal(t, accepted.Load(), answered.Load())
}

func TestHTTPKeepsWhatTheServerHad(t *testing.T) {
	type key struct{}
	states := make(chan http.ConnState, 100)
	server := &http.Server{
		BaseContext: func(net.Listener) context.Context { return context.WithValue(context.Background(), key{}, "base") },
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, key{}, ctx.Value(key{}).(string)+", conn")
		},
		ConnState: func(_ net.Conn, state http.ConnState) { states <- state },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Context().Value(key{}).(string))
		}),
	}
	s := serve(t, server)
	body, err := get(newClient(t), s.url)
	require.NoError(t, err)
	assert.Equal(t, "base, conn", body)
	s.stop(errStop)
	require.NoError(t, s.wait())
	assert.Equal(t, http.StateNew, <-states)
}

// A task that a handler has left running on a hijacked connection is not closed with the
// server, whatever ctx ConnContext has given.
func TestAHijackedConnectionWhoseHandlerHasEndedIsNotOurs(t *testing.T) {
	for name, connContext := range map[string]func(context.Context, net.Conn) context.Context{
		"no ConnContext":     nil,
		"without our values": func(context.Context, net.Conn) context.Context { return context.Background() },
	} {
		t.Run(name, func(t *testing.T) {
			taken := make(chan net.Conn, 1)
			s := serve(t, &http.Server{ConnContext: connContext, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				assert.NoError(t, err)
				assert.True(t, service.IsReady(r.Context()), "the handler is the service's all the same")
				taken <- conn
			})})
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			require.NoError(t, err)
			defer conn.Close()
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			left := <-taken
			defer left.Close()
			s.stop(errStop)
			require.NoError(t, s.wait())
			_, err = io.WriteString(left, "still open")
			assert.NoError(t, err)
		})
	}
}

// A handler whose ctx, and scope, the service does not own is joined all the same.
func TestAHandlerUnderAnotherBaseContextIsJoined(t *testing.T) {
	inside, gone := make(chan struct{}), make(chan struct{})
	another := asynctest.Context(t)
	s := serve(t, &http.Server{
		BaseContext: func(net.Listener) context.Context { return another },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(inside)
			<-r.Context().Done() // as its connection is closed
			<-service.Draining(r.Context())
			time.Sleep(10 * time.Millisecond) // Run would be faster
			close(gone)
		}),
	}, service.Grace(time.Millisecond), service.GiveUp(time.Minute))
	client := newClient(t)
	answer := async.Start(s.ctx, func(context.Context) error { _, _ = get(client, s.url); return nil })
	<-inside
	s.stop(errStop)
	require.Error(t, s.wait())
	select {
	case <-gone:
	default:
		t.Error("Run has returned before the handler")
	}
	_, _ = answer.Join(s.ctx)
}

var registerOnce sync.Once // with -count the test runs more than once

func TestHTTPWithoutAHandlerServesTheDefaultMux(t *testing.T) {
	registerOnce.Do(func() {
		http.HandleFunc("/only-here", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "default") })
	})
	s := serve(t, &http.Server{})
	body, err := get(newClient(t), s.url+"/only-here")
	require.NoError(t, err)
	assert.Equal(t, "default", body)
	s.stop(errStop)
	require.NoError(t, s.wait())
}

func TestAPanicOfAHandlerIsTheServersAffair(t *testing.T) {
	var logged syncBuffer
	s := serve(t, &http.Server{ErrorLog: log.New(&logged, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/task":
			async.Go(r.Context(), func(context.Context) error { panic("boom in a task") })
		default:
			panic("boom")
		}
	})})
	client := newClient(t)
	for _, path := range []string{"/abort", "/task", "/panic"} {
		_, err := get(client, s.url+path)
		require.Error(t, err)
	}
	s.stop(errStop)
	require.NoError(t, s.wait())
	assert.NotContains(t, logged.String(), "abort")
	assert.Contains(t, logged.String(), "boom in a task")
	assert.Contains(t, logged.String(), "panic serving")
}

// net/http says nothing of a handler that calls Goexit: its client is told that the
// connection has ended, and the server that nothing was wrong.
func TestGoexitOfAHandlerIsLogged(t *testing.T) {
	for name, wrap := range map[string]func(http.Handler) http.Handler{
		"in the handler": func(h http.Handler) http.Handler { return h },
		"in a task": func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				async.Go(r.Context(), func(context.Context) error { h.ServeHTTP(w, r); return nil })
			})
		},
		"in a scope": func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = async.Scope(r.Context(), func(context.Context) error { h.ServeHTTP(w, r); return nil })
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var logged syncBuffer
			exits := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runtime.Goexit() })
			s := serve(t, &http.Server{ErrorLog: log.New(&logged, "", 0), Handler: wrap(exits)})
			_, err := get(newClient(t), s.url+"/page%0A")
			assert.Equal(t, name != "in a task", err != nil, "a task that fails is told when the handler has answered")
			s.stop(errStop)
			require.NoError(t, s.wait())
			assert.Contains(t, logged.String(), "service: GET /page%0A: ")
			assert.Contains(t, logged.String(), "runtime.Goexit")
			assert.Equal(t, 1, strings.Count(logged.String(), "\n"), logged.String())
		})
	}
}

// syncBuffer is a buffer that several goroutines write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestFilesOfAFormAreRemoved(t *testing.T) {
	names := make(chan string, 1)
	s := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !assert.NoError(t, r.ParseMultipartForm(1)) {
			return
		}
		f, err := r.MultipartForm.File["file"][0].Open()
		if assert.NoError(t, err) {
			names <- f.(*os.File).Name()
			_ = f.Close()
		}
	})})
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile("file", "x")
	require.NoError(t, err)
	_, _ = part.Write(bytes.Repeat([]byte("x"), 20<<20)) // does not fit in memory
	require.NoError(t, w.Close())
	r, err := newClient(t).Post(s.url, w.FormDataContentType(), &body)
	require.NoError(t, err)
	_ = r.Body.Close()
	s.stop(errStop)
	require.NoError(t, s.wait())
	name := <-names
	_, err = os.Stat(name)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAHandlerThatHangsIsNamed(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	s := serve(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(inside)
		<-release
	})}, service.Grace(time.Millisecond), service.GiveUp(time.Millisecond))
	client := newClient(t)
	answer := async.Start(s.ctx, func(context.Context) error { _, _ = get(client, s.url+"/page%0A"); return nil })
	<-inside
	s.stop(errStop)
	var left *async.StragglerError
	require.ErrorAs(t, s.wait(), &left)
	var names []string
	for _, l := range left.Left {
		names = append(names, l.Task)
	}
	assert.Contains(t, names, "GET /page%0A")
	assert.Contains(t, left.Error(), "TestAHandlerThatHangsIsNamed")
	close(release)
	_, _ = answer.Join(s.ctx)
}

func TestRestartHasNoEffectOnAServer(t *testing.T) {
	l := listen(t)
	svc := service.HTTP("http", l, &http.Server{})
	svc.Options = []async.TaskOption{async.Restart(async.RestartPolicy{Interval: async.Every(time.Hour)})}
	require.NoError(t, l.Close())
	err := service.Run(asynctest.Context(t), []service.Service{svc})
	require.ErrorIs(t, err, net.ErrClosed)
}

// The Run of a server may be called without Run, in somebody's own test of it.
func TestTheRunOfAServerByItself(t *testing.T) {
	l := listen(t)
	svc := service.HTTP("http", l, &http.Server{Handler: http.NotFoundHandler()})
	ctx, stop := context.WithCancelCause(asynctest.Context(t))
	run := async.Start(context.WithoutCancel(ctx), func(context.Context) error { return svc.Run(ctx) })
	_, err := get(newClient(t), "http://"+l.Addr().String())
	require.EqualError(t, err, "404 Not Found")
	stop(errStop)
	_, err = run.Join(context.WithoutCancel(ctx))
	require.NoError(t, err)

	l = listen(t)
	require.NoError(t, l.Close())
	require.ErrorIs(t, service.HTTP("http", l, &http.Server{}).Run(asynctest.Context(t)), net.ErrClosed)
}

func TestAConnectionHijackedAtTheLastMomentIsClosed(t *testing.T) {
	inside := make(chan struct{})
	s := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-r.Context().Done()
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return // its connection was closed before
		}
		_, _ = io.ReadAll(conn)
	})}, service.Grace(time.Millisecond), service.GiveUp(time.Minute))
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-inside
	s.stop(errStop)
	require.ErrorAs(t, s.wait(), new(*async.TimeoutError))
}
