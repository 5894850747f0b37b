package cookbook

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Webhooks returns a handler that calls create with the body of each request
// and answers within 5 s: by then create has ended, or it goes on and the answer
// is 202. The work that goes on belongs to the scope of ctx, which joins it.
func Webhooks(ctx context.Context, create func(ctx context.Context, event []byte) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		event, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		creation := async.Start(ctx, func(ctx context.Context) error { return create(ctx, event) })
		patience, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		_, _ = creation.Wait(patience)
		switch _, err, over := creation.Result(); {
		case !over:
			w.WriteHeader(http.StatusAccepted)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}
