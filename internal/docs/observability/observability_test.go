// Package observability_test has the code of docs/observability.md that needs the root module alone. The code of package otel stands in
// otel/guide_test.go.
package observability_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asyncz"
	"github.com/ambit-go/ambit/async/record"
)

// get asks the handlers that the page registers.
func get(t *testing.T, path string) string {
	answer := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil))
	require.Equal(t, http.StatusOK, answer.Code)
	return answer.Body.String()
}

func TestATextOfTheTree(t *testing.T) {
	file, stderr := filepath.Join(t.TempDir(), "stderr"), os.Stderr
	var err error
	os.Stderr, err = os.Create(file)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, os.Stderr.Close())
		os.Stderr = stderr
	})
	async.Dump(os.Stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(text), "async tree of ")
}

func TestAPageOfTheTree(t *testing.T) {
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		page := asyncz.Handler()
		http.Handle("/debug/async/", http.StripPrefix("/debug/async", page))
		async.Go(ctx, page.Run, async.Daemon()) // it looks each 5 s: then it knows how old tasks are
		assert.Contains(t, get(t, "/debug/async/"), "asyncz.(*Page).Run")
		return nil
	})
	require.NoError(t, err)
}

func TestARecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, errFull := t.Context(), errors.New("disk full")
		serve := func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return errors.Join(async.Sleep(ctx, time.Second), errFull) }, async.Name("write the journal"))
			return nil
		}
		recorded(ctx, t, serve, errFull)
	})
}

func recorded(ctx context.Context, t *testing.T, serve func(context.Context) error, want error) {
	rec := record.New() // 4 MiB: the last 52,000 ends and waits, and beside them the last 256 failures
	err := async.Scope(ctx, serve, async.Observe(rec))
	page := asyncz.Handler(asyncz.Recorder(rec))

	require.ErrorIs(t, err, want)
	answer := httptest.NewRecorder()
	asked := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/?span=all", nil)
	asked.Header.Set("Accept", "text/html") // as browsers do
	page.ServeHTTP(answer, asked)
	assert.Contains(t, answer.Body.String(), "write the journal")
}
