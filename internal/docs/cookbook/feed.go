package cookbook

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Feed writes every event to w, and a ping when none has come for 30 s, until
// the subscription has ended or the client has gone. subscribe blocks until
// then. It may have receive called on any goroutine, and also later.
func Feed(
	w http.ResponseWriter, r *http.Request,
	subscribe func(ctx context.Context, receive func(event string)) error,
) error {
	w.Header().Set("Content-Type", "text/event-stream")
	return async.Scope(r.Context(), func(ctx context.Context) error {
		events := make(chan string) // never closed: receive sends on it
		source := async.Start(ctx, func(ctx context.Context) error {
			return subscribe(ctx, func(event string) {
				select {
				case events <- event:
				case <-ctx.Done(): // also when the task has ended
				}
			})
		}, async.Name("subscription"))
		for {
			var err error
			select {
			case event := <-events:
				_, err = fmt.Fprintf(w, "data: %s\n\n", event)
			case <-time.After(30 * time.Second):
				_, err = io.WriteString(w, ": ping\n\n")
			case <-source.Done():
				if _, err = source.Wait(ctx); err == nil {
					_, err = io.WriteString(w, "event: end\n\n")
				}
				return err
			}
			if err != nil {
				return err
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
		}
	})
}
