package cookbook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// slowly lets others go first before it writes.
type slowly struct{ *httptest.ResponseRecorder }

func (w slowly) Write(p []byte) (int, error) {
	runtime.Gosched()
	return w.ResponseRecorder.Write(p)
}

func TestAFeedLosesNoEventAtItsEnd(t *testing.T) {
	var want strings.Builder
	for i := range 20 {
		fmt.Fprintf(&want, "data: %d\n\n", i)
	}
	for range 100 {
		w := slowly{httptest.NewRecorder()}
		r := httptest.NewRequestWithContext(asynctest.Context(t), http.MethodGet, "/", nil)
		require.NoError(t, Feed(w, r, func(_ context.Context, receive func(string)) error {
			for i := range 20 {
				receive(fmt.Sprint(i))
			}
			return nil
		}))
		require.Equal(t, want.String()+"event: end\n\n", w.Body.String())
	}
}

func TestAFeedPingsAndToleratesACallbackAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(asynctest.Context(t), http.MethodGet, "/", nil)
		var late func(string)
		require.NoError(t, Feed(w, r, func(ctx context.Context, receive func(string)) error {
			late = receive
			go receive("one") // on a goroutine of its own
			return async.Sleep(ctx, 45*time.Second)
		}))
		require.Equal(t, "data: one\n\n: ping\n\nevent: end\n\n", w.Body.String())
		late("two")
		late("three")
		require.NotContains(t, w.Body.String(), "two")
	})
}

func TestAFeedEndsWithItsClientOrItsSource(t *testing.T) {
	ctx, cancel := context.WithCancel(asynctest.Context(t))
	ended := false
	err := Feed(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil),
		func(ctx context.Context, receive func(string)) error {
			receive("one")
			cancel()
			<-ctx.Done()
			ended = true
			return context.Cause(ctx)
		})
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, ended, "the subscription is joined")

	errBroken := errors.New("broken")
	w := httptest.NewRecorder()
	err = Feed(w, httptest.NewRequestWithContext(asynctest.Context(t), http.MethodGet, "/", nil),
		func(context.Context, func(string)) error { return errBroken })
	require.ErrorIs(t, err, errBroken)
	require.Empty(t, w.Body.String())
}
