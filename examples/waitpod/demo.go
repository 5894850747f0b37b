package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/ambit-go/ambit/examples/internal/loopback"
)

// serveDemo serves a pod in the scope of ctx, and returns its URL. The server is
// busy for a while, and wants to be asked every second then.
func serveDemo(ctx context.Context) (string, error) {
	var asked atomic.Int64
	root, err := loopback.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch n := asked.Add(1); n {
		case 1:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "busy", http.StatusServiceUnavailable)
		case 2, 3, 4:
			w.Header().Set("X-Poll-Interval", "1")
			reason := []string{"", "", "", "ContainerCreating", "PodInitializing"}[n]
			_, _ = fmt.Fprintf(w, `{"kind": "Pod", "status": {"phase": "Pending", "reason": %q}}`, reason) // the client may have gone
		default:
			_, _ = fmt.Fprint(w, `{"kind": "Pod", "status": {"phase": "Running"}}`)
		}
	}))
	if err != nil {
		return "", fmt.Errorf("cannot serve the demo: %w", err)
	}
	return root + "/api/v1/namespaces/demo/pods/web", nil
}
