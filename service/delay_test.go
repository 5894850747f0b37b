package service_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

// A pipes is a listener without a network, for bubbles.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
		return net.ErrClosed
	default:
		close(p.closed)
		return nil
	}
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// client returns a client that uses a connection once.
func (p *pipes) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case p.conns <- theirs:
			return ours, nil
		case <-p.closed:
			return nil, net.ErrClosed
		}
	}}}
}

// TestATimetable stops a server that has requests: what happens when is told in the
// documentation of Run.
func TestATimetable(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		l := newPipes()
		begun := time.Now()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			needs, _ := time.ParseDuration(r.URL.Query().Get("needs"))
			if !service.IsReady(r.Context()) {
				w.Header().Set("Unready", "yes")
			}
			if async.Sleep(r.Context(), needs) != nil {
				assert.Equal(t, 40*time.Second, time.Since(begun), "cancelled when the grace is over")
				w.Header().Set("Cancelled", "yes")
			}
		})}
		run := async.Start(context.WithoutCancel(ctx), func(context.Context) error {
			return service.Run(ctx, []service.Service{service.HTTP("http", l, server)}, service.Delay(10*time.Second), service.Grace(20*time.Second))
		})
		answer := func(needs string) *http.Response {
			r, err := l.client().Get("http://server/?needs=" + needs)
			if err != nil {
				return nil
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
			return r
		}
		at := func(d time.Duration) { time.Sleep(d - time.Since(begun)) }

		r := answer("1s")
		require.NotNil(t, r)
		assert.Empty(t, r.Header.Get("Unready"))
		long := async.Execute(context.WithoutCancel(ctx), func(context.Context) (*http.Response, error) { return answer("15s"), nil })
		long2 := async.Execute(context.WithoutCancel(ctx), func(context.Context) (*http.Response, error) { return answer("1h"), nil })
		at(10 * time.Second)
		stop(errStop)
		at(12 * time.Second)
		r = answer("1s")
		require.NotNil(t, r, "it serves in the delay")
		assert.Equal(t, "yes", r.Header.Get("Unready"))
		at(21 * time.Second)
		synctest.Wait()
		assert.Nil(t, answer("1s"), "it takes no more")
		r, _ = long.Join(context.WithoutCancel(ctx))
		require.NotNil(t, r)
		assert.Empty(t, r.Header.Get("Cancelled"))
		_, err := run.Join(context.WithoutCancel(ctx))
		require.ErrorAs(t, err, new(*async.TimeoutError))
		assert.Equal(t, 40*time.Second, time.Since(begun))
		_, _ = long2.Join(context.WithoutCancel(ctx))
	})
}

// TestRunParksNothingBesideItsServices: the supervisor is the goroutine of Run.
func TestRunParksNothingBesideItsServices(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		before := goroutines()
		require.NoError(t, service.Run(ctx, []service.Service{
			{Run: await},
			{Run: func(ctx context.Context) error {
				synctest.Wait()
				assert.Equal(t, 2, goroutines()-before)
				stop(errStop)
				return await(ctx)
			}},
		}, service.Delay(time.Second)))
	})
}
