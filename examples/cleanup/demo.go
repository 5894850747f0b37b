package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/loopback"
)

// demoPlan is a plan for the demo's API.
const demoPlan = `
phase containers 30s
DELETE URL/containers/web
DELETE URL/containers/db?fail=2
phase networks 2s
DELETE URL/networks/hanging
DELETE URL/networks/plain
phase volumes 30s
DELETE URL/volumes/in-use
DELETE URL/volumes/data?fail=1
`

// runDemo cleans up after a job that is stopped because it takes too long. The
// API is in an outer scope, so it lasts until all is over.
func runDemo(ctx context.Context, cfg config, std cli.Streams) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		root, err := loopback.Serve(ctx, new(demoAPI))
		if err != nil {
			return fmt.Errorf("cannot serve the demo: %w", err)
		}
		plan, err := parsePlan(strings.NewReader(strings.ReplaceAll(demoPlan, "URL", root)), cfg.budget)
		if err != nil {
			return err
		}
		if cfg.timeout == 0 {
			cfg.timeout = 100 * time.Millisecond
		}
		c, done := newCleaner(cfg, &cli.Out{W: std.Out})
		defer done()
		return run(ctx, cfg, c, plan, func(ctx context.Context) error {
			cli.FailOnSignal(ctx)
			c.out.Printf("job: working, until it is stopped\n")
			return async.Sleep(ctx, time.Hour)
		})
	}, async.Name("demo"))
}

// A demoAPI removes what it is asked to, save for three: what is busy is removed
// later (?fail=2, at the third request), what is in use never, and one hangs.
type demoAPI struct {
	mu    sync.Mutex
	asked map[string]int // by path
}

func (d *demoAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/hanging"):
		_, _ = io.Copy(io.Discard, r.Body) // so that the server sees the client go
		<-r.Context().Done()
	case strings.HasSuffix(r.URL.Path, "/in-use"):
		http.Error(w, "in use", http.StatusConflict)
	case d.busy(r):
		http.Error(w, "busy", http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (d *demoAPI) busy(r *http.Request) bool {
	var failures int
	_, _ = fmt.Sscan(r.URL.Query().Get("fail"), &failures) // without one there are none
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked == nil {
		d.asked = make(map[string]int)
	}
	d.asked[r.URL.Path]++
	return d.asked[r.URL.Path] <= failures
}
