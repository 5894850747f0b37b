package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

var errFlush = errors.New("cannot flush")

// TestAServiceWhoseDrainFailsIsCancelledAtOnce and alone: nobody else would tell its
// Run, and the others are to have the time that it would wait for in vain.
func TestAServiceWhoseDrainFailsIsCancelledAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		drain func(ctx context.Context) error
		opts  []async.TaskOption
		is    error
		after time.Duration // until Drain fails
	}{
		"with an error": {drain: func(context.Context) error { return errFlush }, is: errFlush},
		"after a while": {drain: func(ctx context.Context) error { _ = async.Sleep(ctx, 3*time.Second); return errFlush }, is: errFlush, after: 3 * time.Second},
		"in a task of it": {drain: func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return errFlush })
			return nil
		}, is: errFlush},
		"with Goexit":  {drain: func(context.Context) error { runtime.Goexit(); return nil }, is: async.ErrGoexit},
		"with Restart": {drain: func(context.Context) error { return errFlush }, is: errFlush, opts: []async.TaskOption{async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				d := newDiary()
				runs := 0
				begun := time.Now()
				time.AfterFunc(time.Second, func() { stop(errStop) })
				err := service.Run(ctx, []service.Service{
					d.worker("other", time.Second),
					{Name: "bad", Drain: tc.drain, Options: tc.opts, Run: func(ctx context.Context) error {
						runs++
						<-ctx.Done()
						assert.ErrorIs(t, context.Cause(ctx), tc.is)
						assert.ErrorIs(t, context.Cause(ctx), errStop)
						return ctx.Err()
					}},
				})
				require.ErrorIs(t, err, tc.is)
				require.NotErrorIs(t, err, errStop, "the drain of the others was not cut short")
				require.ErrorContains(t, err, "service bad: drain: ")
				require.Equal(t, 2*time.Second+tc.after, time.Since(begun))
				require.Equal(t, []string{"other runs", "other drains", "other ends"}, d.read())
				require.Equal(t, 1, runs)
			})
		})
	}
}

// TestADrainThatPanics is a failure of the service, and is raised when the others have
// drained.
func TestADrainThatPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		begun := time.Now()
		time.AfterFunc(time.Second, func() { stop(errStop) })
		d := newDiary()
		p := panicOf(t, func() {
			_ = service.Run(ctx, []service.Service{
				d.worker("other", time.Second),
				{Name: "bad", Run: await, Drain: func(context.Context) error { panic(errPlanted) }},
			})
		})
		require.ErrorIs(t, p, errPlanted)
		require.Equal(t, "service bad: drain", p.Task)
		require.Equal(t, 2*time.Second, time.Since(begun))
		require.Equal(t, []string{"other runs", "other drains", "other ends"}, d.read())
	})
}

// TestWhatIsReturnedAfterAFailedDrain by Run is told, unless it only says that it was
// stopped.
func TestWhatIsReturnedAfterAFailedDrain(t *testing.T) {
	for name, tc := range map[string]struct {
		run  func(ctx context.Context) error
		text string
	}{
		"its ctx":          {await, ""},
		"the cause":        {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, ""},
		"a closed server":  {func(ctx context.Context) error { <-ctx.Done(); return http.ErrServerClosed }, ""},
		"nothing":          {func(ctx context.Context) error { <-ctx.Done(); return nil }, ""},
		"a failure":        {func(ctx context.Context) error { <-ctx.Done(); return errPlanted }, "\n\tservice bad: planted"},
		"it is deaf to it": {func(ctx context.Context) error { time.Sleep(time.Second); return nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				time.AfterFunc(time.Second/2, func() { stop(errStop) })
				err := service.Run(ctx, []service.Service{
					{Name: "bad", Drain: func(context.Context) error { return errFlush }, Run: tc.run},
				})
				require.EqualError(t, err, "service bad: drain: cannot flush"+tc.text)
			})
		})
	}
}

// TestARunInAServiceWhoseDrainFailsIsDrained: its level 1 begins then, not its level 2.
func TestARunInAServiceWhoseDrainFailsIsDrained(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		d := newDiary()
		time.AfterFunc(time.Second, func() { stop(errStop) })
		err := service.Run(ctx, []service.Service{{
			Name: "outer",
			Run: func(ctx context.Context) error {
				return service.Run(ctx, []service.Service{d.worker("inner", time.Second)})
			},
			Drain: func(context.Context) error { return errFlush },
		}})
		require.EqualError(t, err, "service outer: drain: cannot flush")
		require.Equal(t, []string{"inner runs", "inner drains", "inner ends"}, d.read())
	})
}

// A pipe is a listener with one connection. It closes, and says that it cannot.
type pipe struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipe() (l *pipe, client net.Conn) {
	client, server := net.Pipe()
	l = &pipe{make(chan net.Conn, 1), make(chan struct{})}
	l.conns <- server
	return l, client
}

func (l *pipe) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipe) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return errFlush
}

func (l *pipe) Addr() net.Addr { return new(net.TCPAddr) }

// TestAListenerThatCannotBeClosedCutsNoHandler, not one that has taken its connection
// either: the failure is told when they have ended.
func TestAListenerThatCannotBeClosedCutsNoHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		l, conn := newPipe()
		defer conn.Close()
		d := newDiary()
		time.AfterFunc(time.Second, func() { stop(errStop) })
		async.Go(ctx, func(context.Context) error {
			_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			return err
		})
		err := service.Run(ctx, []service.Service{service.HTTP("http", l, &http.Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if !assert.NoError(t, err) {
					return
				}
				defer conn.Close()
				<-service.Draining(r.Context())
				d.note(fmt.Sprint("slept: ", async.Sleep(r.Context(), 5*time.Second)))
			}),
		})})
		require.EqualError(t, err, "service http: drain: cannot flush")
		require.Equal(t, []string{"slept: <nil>"}, d.read())
	})
}
