package byhand

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"
)

func Feed(
	w http.ResponseWriter, r *http.Request,
	subscribe func(ctx context.Context, receive func(event string)) error,
) {
	events := make(chan string, 10)
	ctx, cancel := context.WithCancel(context.Background())
	defer func() {
		cancel()
		close(events)
	}()
	go func() {
		err := subscribe(ctx, func(event string) {
			defer func() { _ = recover() }()
			select {
			case <-ctx.Done():
			default:
				events <- event
			}
		})
		if err != nil {
			log.Print(err)
		}
		_, _ = fmt.Fprint(w, "event: end\n\n")
		cancel()
	}()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-ctx.Done():
			return
		case <-time.After(30 * time.Second):
			_, _ = fmt.Fprint(w, ": ping\n\n")
		case event := <-events:
			_, _ = fmt.Fprintf(w, "data: %s\n\n", event)
		}
		w.(http.Flusher).Flush()
	}
}
