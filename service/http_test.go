package service_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/service"
)

// listen opens a listener on loopback.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

// newClient returns a client that leaves no goroutine behind.
func newClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// get gets a page and returns its body.
func get(client *http.Client, url string) (string, error) {
	r, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = errors.New(r.Status)
	}
	return string(body), err
}

// A server is a Run with a server of HTTP in it, in the background.
type server struct {
	t    *testing.T
	l    net.Listener
	url  string
	stop context.CancelCauseFunc
	run  *async.Future[struct{}]
	ctx  context.Context
}

// serve runs s as a service.
func serve(t *testing.T, s *http.Server, opts ...service.Option) *server {
	t.Helper()
	l := listen(t)
	ctx := asynctest.Context(t)
	outer, stop := context.WithCancelCause(ctx)
	return &server{
		t:    t,
		l:    l,
		url:  "http://" + l.Addr().String(),
		stop: stop,
		ctx:  ctx,
		run: async.Start(ctx, func(context.Context) error {
			return service.Run(outer, []service.Service{service.HTTP("http", l, s)}, opts...)
		}),
	}
}

// wait returns what Run returns.
func (s *server) wait() error {
	_, err := s.run.Join(s.ctx)
	return err
}

func TestHTTPServesUntilItIsStopped(t *testing.T) {
	s := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello")
	})})
	body, err := get(newClient(t), s.url)
	require.NoError(t, err)
	assert.Equal(t, "hello", body)
	s.stop(errStop)
	require.NoError(t, s.wait(), "ErrServerClosed that was asked for is no failure")
	_, err = s.l.Accept() // to dial would be to ask whoever has the port by now
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestARequestLivesThroughTheDrain(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	s := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-service.Draining(r.Context())
		<-release
		if err := r.Context().Err(); err != nil {
			t.Error("cancelled:", err)
		}
		_, _ = io.WriteString(w, "finished")
	})})
	answer := async.Execute(s.ctx, func(context.Context) (string, error) { return get(newClient(t), s.url) })
	<-inside
	s.stop(errStop)
	assert.False(t, s.run.State() == async.StateDone)
	close(release)
	body, err := answer.Join(s.ctx)
	require.NoError(t, err)
	assert.Equal(t, "finished", body)
	require.NoError(t, s.wait())
}

func TestARequestIsCancelledWhenTheGraceIsOver(t *testing.T) {
	inside := make(chan struct{})
	causes := make(chan error, 1)
	s := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-r.Context().Done()
		causes <- context.Cause(r.Context())
	})}, service.Grace(20*time.Millisecond), service.GiveUp(time.Minute))
	answer := async.Execute(s.ctx, func(context.Context) (string, error) { return get(newClient(t), s.url) })
	<-inside
	s.stop(errStop)
	err := s.wait()
	for _, err := range []error{err, <-causes} {
		require.ErrorIs(t, err, errStop)
		require.ErrorAs(t, err, new(*async.TimeoutError))
	}
	_, _ = answer.Join(s.ctx) // it may have been answered just before its connection was closed
}

func TestHijackedConnectionsAreJoined(t *testing.T) {
	for name, grace := range map[string]time.Duration{"drained": time.Minute, "closed when the grace is over": 20 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			s := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn, rw, err := http.NewResponseController(w).Hijack()
				if !assert.NoError(t, err) {
					return
				}
				defer conn.Close()
				_, _ = conn.Write([]byte("taken\n"))
				_, err = rw.ReadString('\n') // it does not look at its ctx
				ended <- err
			})}, service.Grace(grace), service.GiveUp(time.Minute))
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			require.NoError(t, err)
			defer conn.Close()
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			line, err := bufio.NewReader(conn).ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, "taken\n", line)
			s.stop(errStop)
			if name == "drained" {
				_, _ = io.WriteString(conn, "bye\n")
				require.NoError(t, s.wait())
			} else {
				require.ErrorAs(t, s.wait(), new(*async.TimeoutError))
			}
			select {
			case err := <-ended:
				assert.Equal(t, name == "drained", err == nil, err)
			default:
				t.Error("Run has returned before the handler")
			}
		})
	}
}

func TestErrServerClosedUnaskedIsAFailure(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-service.Draining(r.Context()) // the failure has the others drain
		close(release)
		_, _ = io.WriteString(w, "finished")
	})}
	s := serve(t, server)
	answer := async.Execute(s.ctx, func(context.Context) (string, error) { return get(newClient(t), s.url) })
	<-inside
	shut := async.Start(s.ctx, func(ctx context.Context) error { return server.Shutdown(ctx) })
	err := s.wait()
	require.ErrorIs(t, err, http.ErrServerClosed)
	require.EqualError(t, err, "service http: http: Server closed")
	_, err = shut.Join(s.ctx)
	require.NoError(t, err)
	body, err := answer.Join(s.ctx)
	require.NoError(t, err)
	assert.Equal(t, "finished", body, "what it had accepted is not lost")
}

func TestAListenerThatFailsIsAFailure(t *testing.T) {
	l := listen(t)
	require.NoError(t, l.Close())
	err := service.Run(asynctest.Context(t), []service.Service{
		{Run: await},
		service.HTTP("http", l, &http.Server{}),
	})
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestTheListenerOfAServerThatWasNeverRunIsClosed(t *testing.T) {
	l := listen(t)
	err := service.Run(asynctest.Context(t), []service.Service{
		{Name: "boot", Run: func(context.Context) error { return errPlanted }, Startup: time.Minute},
		service.HTTP("http", l, &http.Server{}),
	})
	require.ErrorIs(t, err, errPlanted)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestARequestIsAScope(t *testing.T) {
	var logged strings.Builder
	joined := false
	s := serve(t, &http.Server{
		ErrorLog: log.New(&logged, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx := r.Context()
			async.Go(ctx, func(context.Context) error {
				joined = true
				return errPlanted
			})
		}),
	})
	_, err := get(newClient(t), s.url+"/page")
	require.NoError(t, err)
	s.stop(errStop)
	require.NoError(t, s.wait(), "it is no failure of the server")
	assert.True(t, joined)
	assert.Equal(t, "service: GET /page: planted\n", logged.String())
}

// A server that was shut down says ErrServerClosed, which is no failure of one that was
// told to stop: so a Run with it would end at once, and well.
func TestAServerThatHasRunBeforeIsAFailure(t *testing.T) {
	const text = "service http: its server has run before: make a server and a service for each Run"
	ctx := asynctest.Context(t)
	done, cancel := context.WithCancel(ctx)
	l := listen(t)
	s := service.HTTP("http", l, &http.Server{})
	s.Startup = time.Minute // so it runs before the other ends
	other := service.Service{Name: "stop", Run: func(context.Context) error { return nil }}
	require.NoError(t, service.Run(done, []service.Service{s, other}))
	cancel()
	s.Options = []async.TaskOption{async.Restart(async.RestartPolicy{Interval: async.Every(time.Millisecond), Within: -1})}
	assert.EqualError(t, service.Run(ctx, []service.Service{s}), text)

	twin := service.HTTP("http", listen(t), &http.Server{})
	assert.EqualError(t, service.Run(ctx, []service.Service{twin, twin}), text, "two at once")
}
