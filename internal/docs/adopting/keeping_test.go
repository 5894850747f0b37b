package adopting

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/internal/docs/adopting/byhand"
)

// A client works as long as the ctx it was dialled with.
type client struct {
	ctx    context.Context
	closed atomic.Bool
}

func (c *client) Close() error { c.closed.Store(true); return nil }

func TestAClientLivesAsLongAsItsOwner(t *testing.T) {
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	dial := func(ctx context.Context) (*client, error) { return &client{ctx: ctx}, nil }

	c, err := byhand.Connect(ctx, dial)
	require.NoError(t, err)
	require.ErrorIs(t, context.Cause(c.ctx), async.ErrScopeEnded, "the fault that the page lists")

	c, err = Connect(ctx, dial)
	require.NoError(t, err)
	require.NoError(t, c.ctx.Err())
	cancel(errTest)
	require.ErrorIs(t, context.Cause(c.ctx), errTest)
}

func TestAClientThatComesTooLateIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := &client{}
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			_, err := Connect(ctx, func(ctx context.Context) (*client, error) {
				<-ctx.Done() // it is told
				time.Sleep(time.Second)
				return late, nil
			})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return nil
		})
		require.NoError(t, err)
		require.True(t, late.closed.Load())
	})
}

func TestABodyIsReadInsideTheHandler(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 100 {
			_, _ = io.WriteString(w, r.URL.Path[1:])
			w.(http.Flusher).Flush()
		}
	}))
	defer server.Close()
	defer server.Client().CloseIdleConnections()
	ctx := asynctest.Context(t)
	bodies, err := Fetch(ctx, server.Client(), server.URL+"/a", server.URL+"/bb")
	require.NoError(t, err)
	require.Len(t, bodies, 2)
	require.Len(t, bodies[0], 100)
	require.Len(t, bodies[1], 200)
	_, err = Fetch(ctx, server.Client(), server.URL+"/a", "no such scheme")
	require.Error(t, err)
}

func TestASharedLoadOutlivesTheOneThatAskedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			var loads atomic.Int32
			pages := NewPages(ctx, func(ctx context.Context, url string) (string, error) {
				loads.Add(1)
				return url, async.Sleep(ctx, time.Minute)
			})
			hasty, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := pages.Get(hasty, "home")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			page, err := pages.Get(ctx, "home")
			require.NoError(t, err)
			require.Equal(t, "home", page)
			require.EqualValues(t, 1, loads.Load())
			return nil
		}))
	})
}

func TestALoadEndsWithItsOwner(t *testing.T) {
	var why error
	err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		started := make(chan struct{})
		pages := NewPages(ctx, func(ctx context.Context, _ string) (string, error) {
			close(started)
			<-ctx.Done()
			why = context.Cause(ctx)
			return "", why
		})
		pages.page("home")
		<-started
		return errTest
	})
	require.ErrorIs(t, err, errTest)
	require.ErrorIs(t, why, errTest)
}
