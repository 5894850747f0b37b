package service_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/service"
)

// boots is a service that is ready after a time.
func boots(d *diary, name string, needs, startup time.Duration) service.Service {
	return service.Service{Name: name, Startup: startup, Run: func(ctx context.Context) error {
		d.note(name + " runs")
		if err := async.Sleep(ctx, needs); err != nil {
			d.note(name + " is told as it starts")
			return err
		}
		d.note(name + " is ready")
		service.Ready(ctx)
		<-ctx.Done()
		d.note(name + " ends")
		return ctx.Err()
	}}
}

func TestTheNextIsStartedWhenTheOneBeforeIsReady(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		d := newDiary()
		time.AfterFunc(time.Minute, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{
			boots(d, "a", 2*time.Second, time.Minute),
			boots(d, "b", time.Second, 2*time.Second),
			boots(d, "c", time.Second, 0),
			boots(d, "d", 4*time.Second, 5*time.Second),
		}))
		assert.Equal(t, []string{"a runs", "a is ready", "b runs", "b is ready"}, d.read()[:4])
	})
}

func TestAStartupThatTakesTooLongFailsTheStart(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		d := newDiary()
		begun := time.Now()
		err := service.Run(ctx, []service.Service{
			boots(d, "a", time.Second, time.Minute),
			boots(d, "slow", time.Hour, time.Minute),
			boots(d, "never", 0, time.Minute),
		}, service.Delay(time.Hour))
		assert.Equal(t, 61*time.Second, time.Since(begun), "they were never ready: there is nothing to delay")
		var limit *async.TimeoutError
		require.ErrorAs(t, err, &limit)
		require.EqualError(t, err, "async: service slow: startup: context deadline exceeded (limit 1m0s, waited 1m0s)")
		assert.Equal(t, []string{"a runs", "a is ready", "slow runs", "slow is told as it starts", "a ends"}, d.read())
	})
}

func TestAFailureBeforeReadyIsTheFirstError(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		d := newDiary()
		errClose := errors.New("cannot close")
		err := service.Run(ctx, []service.Service{
			{Name: "store", Run: func(ctx context.Context) error {
				<-ctx.Done()
				return errClose
			}},
			{Name: "bad", Startup: time.Minute, Run: func(context.Context) error { synctest.Wait(); return errPlanted }},
			boots(d, "never", 0, 0),
		})
		require.EqualError(t, err, "service bad: planted\n\tservice store: cannot close")
		assert.Empty(t, d.read())
	})
}

func TestAnEndBeforeReadyIsAFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		err := service.Run(ctx, []service.Service{
			{Name: "x", Startup: time.Minute, Run: func(context.Context) error { return nil }},
			{Run: func(context.Context) error { t.Error("it was started"); return nil }},
		})
		require.EqualError(t, err, "service x: it has ended before it was ready")
	})
}

func TestAJobThatEndsWellIsReady(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		begun := time.Now()
		migrate := service.Service{Name: "migrate", Startup: time.Minute, MayEnd: true, Run: func(ctx context.Context) error {
			return async.Sleep(ctx, 10*time.Second)
		}}
		require.NoError(t, service.Run(ctx, []service.Service{migrate, {Run: func(ctx context.Context) error {
			assert.Equal(t, 10*time.Second, time.Since(begun))
			_ = async.Sleep(ctx, time.Second)
			assert.True(t, service.IsReady(ctx))
			stop(errStop)
			return await(ctx)
		}}}))
	})
}

func TestAStopDuringTheStart(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		d := newDiary()
		time.AfterFunc(5*time.Second, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{
			d.worker("first", time.Second),
			boots(d, "slow", time.Hour, 2*time.Hour),
			boots(d, "never", 0, 0),
		}, service.Delay(time.Hour)))
		assert.Equal(t, []string{"slow is told as it starts", "first drains", "first ends"}, d.read()[2:])
	})
}

func TestReadyTwiceFromATaskAndElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		service.Ready(ctx) // of no service
		assert.False(t, service.IsReady(ctx))
		assert.False(t, service.IsReady(context.Background()))
		assert.Equal(t, ctx.Done(), service.Draining(ctx), "where there is no Run, ctx says it")
		var late context.Context
		require.NoError(t, service.Run(ctx, []service.Service{
			{Startup: time.Minute, Run: func(ctx context.Context) error {
				late = ctx
				async.Go(ctx, func(ctx context.Context) error {
					ctx, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					service.Ready(ctx)
					service.Ready(ctx)
					return nil
				})
				return await(ctx)
			}},
			{Run: func(ctx context.Context) error {
				synctest.Wait()
				assert.True(t, service.IsReady(ctx))
				stop(errStop)
				<-service.Draining(ctx)
				assert.False(t, service.IsReady(ctx))
				return nil
			}},
		}))
		service.Ready(late)
		assert.False(t, service.IsReady(late))
	})
}

func TestIsReadyOfANestedRunAsksTheOuterToo(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		drained := make(chan struct{})
		require.ErrorIs(t, service.Run(ctx, []service.Service{
			{Name: "set", Run: func(ctx context.Context) error {
				return service.Run(ctx, []service.Service{{Run: func(ctx context.Context) error {
					synctest.Wait()
					assert.False(t, service.IsReady(ctx), "the other is not")
					time.Sleep(time.Minute)
					assert.True(t, service.IsReady(ctx))
					stop(errStop)
					synctest.Wait()
					assert.False(t, service.IsReady(ctx), "the outer drains")
					assert.NoError(t, ctx.Err(), "its own turn has not come")
					<-service.Draining(ctx)
					close(drained)
					return await(ctx)
				}}})
			}},
			boots(newDiary(), "slow", time.Second, time.Minute),
			{Name: "last", Run: func(ctx context.Context) error {
				<-drained
				return nil
			}, Drain: await},
		}, service.Grace(time.Second)), context.DeadlineExceeded)
	})
}

func TestDelayServesUnready(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		begun := time.Now()
		var drains, ends time.Duration
		require.NoError(t, service.Run(ctx, []service.Service{{
			Run: func(ctx context.Context) error {
				assert.True(t, service.IsReady(ctx))
				stop(errStop)
				<-service.Draining(ctx)
				drains = time.Since(begun)
				assert.False(t, service.IsReady(ctx))
				<-ctx.Done()
				ends = time.Since(begun)
				return nil
			},
		}}, service.Delay(10*time.Second)))
		assert.Equal(t, time.Duration(0), drains)
		assert.Equal(t, 10*time.Second, ends)
	})
}

// TestAHealthHandler asks a server for what IsReady says while it serves, and while
// another is drained.
func TestAHealthHandler(t *testing.T) {
	for name, base := range map[string]func(net.Listener) context.Context{
		"":                              nil,
		"with a BaseContext of its own": func(net.Listener) context.Context { return context.Background() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := asynctest.Context(t)
			outer, stop := context.WithCancelCause(ctx)
			l, draining, release := listen(t), make(chan struct{}), make(chan struct{})
			health := func(w http.ResponseWriter, r *http.Request) {
				if !service.IsReady(r.Context()) {
					http.Error(w, "", http.StatusServiceUnavailable)
				}
			}
			run := async.Start(ctx, func(context.Context) error {
				return service.Run(outer, []service.Service{
					service.HTTP("http", l, &http.Server{Handler: http.HandlerFunc(health), BaseContext: base}),
					{Name: "last", Run: func(ctx context.Context) error {
						<-release
						return nil
					}, Drain: func(context.Context) error {
						close(draining)
						return nil
					}},
				})
			})
			client, url := newClient(t), "http://"+l.Addr().String()
			require.Eventually(t, func() bool { // the last may not run yet
				_, err := get(client, url)
				return err == nil
			}, time.Minute, time.Millisecond)
			stop(errStop)
			<-draining
			_, err := get(client, url)
			require.EqualError(t, err, "503 Service Unavailable", "it still serves")
			close(release)
			_, err = run.Join(ctx)
			require.NoError(t, err)
		})
	}
}
