package byhand

import (
	"context"
	"net/http"
	"time"
)

func Webhook(w http.ResponseWriter, r *http.Request, create func(context.Context, *http.Request) error) {
	created := make(chan error)
	go func() { created <- create(r.Context(), r) }()
	select {
	case err := <-created:
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	case <-time.After(5 * time.Second):
		w.WriteHeader(http.StatusAccepted)
	}
}
