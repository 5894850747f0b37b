package cookbook

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// A fakeAgent notes what is done with it.
type fakeAgent struct {
	mu    sync.Mutex
	notes []string

	follow func(ctx context.Context) error
	health error
}

func (a *fakeAgent) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notes = append(a.notes, what)
}

func (a *fakeAgent) Register(context.Context) error   { a.note("registered"); return nil }
func (a *fakeAgent) Follow(ctx context.Context) error { return a.follow(ctx) }
func (a *fakeAgent) Health(context.Context) error     { return a.health }

func (a *fakeAgent) Unregister(ctx context.Context) error {
	a.note("unregistered")
	return ctx.Err()
}

func (a *fakeAgent) Work(ctx context.Context) error {
	<-ctx.Done()
	time.Sleep(time.Second) // reports that the job was cancelled
	a.note("done")
	return nil
}

func TestAnAgentIsUnregisteredWhenItsWorkHasEnded(t *testing.T) {
	errLost, errSick := errors.New("connection lost"), errors.New("server does not answer")
	tests := []struct {
		name   string
		follow func(ctx context.Context) error
		health error
		want   error
	}{
		{"goodbye", func(ctx context.Context) error { return async.Sleep(ctx, time.Minute) }, nil, nil},
		{"the connection is lost", func(context.Context) error { return errLost }, nil, errLost},
		{"it is not well", func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }, errSick, errSick},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &fakeAgent{follow: test.follow, health: test.health}
				start := time.Now()
				err := RunAgent(asynctest.Context(t), a, 3)
				require.Less(t, time.Since(start), 2*time.Minute)
				if test.want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, test.want)
				}
				require.Equal(t, []string{"registered", "done", "done", "done", "unregistered"}, a.notes)
			})
		})
	}
}

func TestAnAgentThatIsCancelledSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(asynctest.Context(t))
		time.AfterFunc(time.Hour, func() { cancel(errUser) })
		a := &fakeAgent{follow: func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }}
		require.ErrorIs(t, RunAgent(ctx, a, 1), errUser)
		require.Equal(t, "unregistered", a.notes[len(a.notes)-1])
		require.True(t, slices.Contains(a.notes, "done"))
	})
}
