package adopting

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Shop shows a page that is made of two answers.
type Shop struct {
	User func(ctx context.Context) (string, error)
	Cart func(ctx context.Context) (int, error)
}

func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var page string
	err := async.Scope(r.Context(), func(ctx context.Context) error {
		user := async.Execute(ctx, s.User)
		cart := async.Execute(ctx, s.Cart)
		name, err := user.Await(ctx, 0)
		if err != nil {
			return err // the cart is cancelled and joined
		}
		n, err := cart.Await(ctx, 100*time.Millisecond)
		if err != nil {
			n = 0 // a page without the cart is better than none
		}
		page = fmt.Sprintf("%s: %d\n", name, n)
		return nil
	}, async.Name("shop"), async.Timeout(2*time.Second))
	switch {
	case err == nil:
		_, _ = fmt.Fprint(w, page)
	case r.Context().Err() != nil: // the client has gone
	case errors.Is(err, context.DeadlineExceeded):
		http.Error(w, "too slow", http.StatusGatewayTimeout)
	default:
		http.Error(w, "sorry", http.StatusInternalServerError)
	}
}

// Pay records a payment for which the client may not wait: it has 5 s, also if
// the connection breaks.
func Pay(w http.ResponseWriter, r *http.Request, record func(ctx context.Context) error) {
	if err := async.Shield(r.Context(), 5*time.Second, record); err != nil {
		http.Error(w, "not paid", http.StatusInternalServerError)
	}
}
