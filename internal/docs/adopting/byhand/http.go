package byhand

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

func ServeShop(
	w http.ResponseWriter, r *http.Request,
	user func(ctx context.Context) (string, error), cart func(ctx context.Context) (int, error),
) {
	type answer struct {
		name string
		n    int
		err  error
	}
	users, carts := make(chan answer), make(chan answer)
	go func() {
		name, err := user(r.Context())
		users <- answer{name: name, err: err}
	}()
	go func() {
		n, err := cart(r.Context())
		carts <- answer{n: n, err: err}
	}()
	u, c := <-users, answer{}
	if u.err != nil {
		http.Error(w, "sorry", http.StatusInternalServerError)
		return
	}
	select {
	case c = <-carts:
	case <-time.After(100 * time.Millisecond):
	}
	_, _ = fmt.Fprintf(w, "%s: %d\n", u.name, c.n)
}
