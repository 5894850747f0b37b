package adopting

import (
	"context"
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

// serve has h answer one request with ctx.
func serve(ctx context.Context, h http.HandlerFunc) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	return w
}

// after returns v after d, or the cause of its context.
func after[T any](d time.Duration, v T, err error) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		if stopped := async.Sleep(ctx, d); stopped != nil {
			return v, stopped
		}
		return v, err
	}
}

func TestAHandlerAnswersInTimeAndLeavesNobody(t *testing.T) {
	tests := []struct {
		name       string
		user, cart func(context.Context) (string, error)
		status     int
		body       string
	}{
		{"both in time", after(time.Second, "ann", nil), after(time.Second, "", nil), 200, "ann: 3\n"},
		{"the cart is late", after(time.Second, "ann", nil), after(time.Hour, "", nil), 200, "ann: 0\n"},
		{"the cart fails", after(time.Second, "ann", nil), after(time.Second, "", errTest), 200, "ann: 0\n"},
		{"the user fails", after(time.Second, "", errTest), after(time.Hour, "", nil), 500, "sorry\n"},
		{"the user is late", after(time.Hour, "", nil), after(time.Hour, "", nil), 504, "too slow\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := asynctest.Context(t)
				var running atomic.Int32
				counted := func(f func(context.Context) (string, error)) func(context.Context) (string, error) {
					return func(ctx context.Context) (string, error) {
						running.Add(1)
						defer running.Add(-1)
						return f(ctx)
					}
				}
				shop := &Shop{User: counted(test.user), Cart: func(ctx context.Context) (int, error) {
					_, err := counted(test.cart)(ctx)
					return 3, err
				}}
				w := serve(ctx, shop.ServeHTTP)
				require.Equal(t, test.status, w.Code)
				require.Equal(t, test.body, w.Body.String())
				require.Zero(t, running.Load())
			})
		})
	}
}

func TestAPaymentOutlivesTheConnection(t *testing.T) {
	ctx, gone := context.WithCancel(asynctest.Context(t))
	gone()
	paid := false
	w := serve(ctx, func(w http.ResponseWriter, r *http.Request) {
		Pay(w, r, func(ctx context.Context) error { paid = true; return ctx.Err() })
	})
	require.Equal(t, http.StatusOK, w.Code)
	require.True(t, paid)

	w = serve(ctx, func(w http.ResponseWriter, r *http.Request) {
		Pay(w, r, func(context.Context) error { return errTest })
	})
	require.Equal(t, http.StatusInternalServerError, w.Code)
}

func TestTheShopByHandAnswersIfNothingGoesWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t.Context(), func(w http.ResponseWriter, r *http.Request) {
			byhand.ServeShop(w, r, after(time.Second, "ann", nil), after(time.Second, 3, nil))
		})
		require.Equal(t, "ann: 3\n", w.Body.String())
	})
}
