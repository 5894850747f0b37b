//go:build unix

package remote

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

var errUser = errors.New("cancelled by the user")

// A script's output: read to the end, or cut.
type output struct {
	meter  Meter
	cut    chan struct{}
	future *async.Future[struct{}]
}

func start(ctx context.Context, write func() time.Duration, read time.Duration) *output {
	o := &output{cut: make(chan struct{})}
	w := o.meter.Writer(writerFunc(func(p []byte) (int, error) {
		time.Sleep(write())
		return len(p), nil
	}))
	o.future = async.Start(ctx, func(context.Context) error {
		_, _ = w.Write([]byte("last"))
		select {
		case <-time.After(read):
		case <-o.cut:
		}
		return nil
	})
	return o
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestDrain(t *testing.T) {
	const limit, ever = time.Second, 1000 * time.Hour
	for name, c := range map[string]struct {
		write, read time.Duration // that the last Write and the end after it take
		told        bool
		held        bool
		err         error
		took        time.Duration
	}{
		"the output ends":             {0, time.Second / 2, false, false, nil, time.Second / 2},
		"it is held open":             {0, ever, false, true, nil, limit},
		"a slow reader":               {10500 * time.Millisecond, 0, false, false, nil, 10500 * time.Millisecond},
		"a slow reader, then held":    {10500 * time.Millisecond, ever, false, true, nil, 12 * time.Second},
		"told to stop, and held":      {0, ever, true, true, nil, limit},
		"told to stop, and no reader": {time.Hour, 0, true, false, ErrStuck, 2 * limit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := asynctest.Context(t)
				o := start(ctx, func() time.Duration { return c.write }, c.read)
				begin := time.Now()
				held, err := Drain(ctx, o.future, &o.meter, limit, c.told, func() { close(o.cut) })
				assert.Equal(t, c.took, time.Since(begin))
				assert.Equal(t, c.held, held)
				assert.Equal(t, c.err, err)
				_, _ = o.future.Wait(ctx)
			})
		})
	}
}

func TestAStoppedErrorIsBothErrors(t *testing.T) {
	end := errors.New("the script exited with status 7")
	ctx, cancel := context.WithCancelCause(context.Background())
	assert.Equal(t, end, Stopped(ctx, end))
	cancel(errUser)
	err := Stopped(ctx, end)
	assert.ErrorIs(t, err, errUser)
	assert.ErrorIs(t, err, end)
	assert.EqualError(t, err, "cancelled by the user; the script exited with status 7")
	assert.EqualError(t, Stopped(ctx, nil), "cancelled by the user; the script exited with status 0")

	scope := async.Scope(ctx, func(ctx context.Context) error { return err })
	assert.EqualError(t, Brief(scope), err.Error())
	assert.ErrorIs(t, Brief(errors.Join(scope, ErrStuck)), ErrStuck)
	assert.Equal(t, end, Brief(end))
}
