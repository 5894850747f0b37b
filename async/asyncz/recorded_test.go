package asyncz_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asyncz"
	"github.com/ambit-go/ambit/async/record"
)

// The page lists the last failures, and hands out what was recorded; texts are for those who ask.
func TestWhatWasRecorded(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		rec := record.New()
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Start(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Second) }, async.Name("sleeps"))
			f := async.Start(ctx, func(context.Context) error { return errPlanted }, async.Name("<fails>"))
			g := async.Start(ctx, func(context.Context) error { runtime.Goexit(); return nil }, async.Name("exits"))
			_, _ = f.Wait(ctx)
			_, _ = g.Wait(ctx)
			return nil
		}, async.Observe(rec))
		time.Sleep(time.Minute)
		synctest.Wait()
		quiet := asyncz.Handler(asyncz.Of(ctx), asyncz.Recorder(rec))
		require.Contains(t, plain(html(t, quiet)), "&lt;fails&gt;")
		require.Regexp(t, `#\d+\.\d+ 61s error \*errors.errorString `, plain(html(t, quiet)))
		require.Contains(t, plain(html(t, quiet)), " 61s goexit ")
		require.NotContains(t, html(t, quiet), "planted")
		loud := asyncz.Handler(asyncz.Of(ctx), asyncz.Recorder(rec), asyncz.Texts())
		require.Contains(t, html(t, loud), "planted &lt;b&gt;")
		for page, text := range map[http.Handler]string{quiet: "", loud: errPlanted.Error()} {
			answer := get(t, page, "format", "recording")
			require.Equal(t, "application/gzip", answer.Header().Get("Content-Type"))
			read, err := record.Open(bytes.NewReader(answer.Body.Bytes()))
			require.NoError(t, err)
			require.Len(t, read.Failures, 2)
			for _, f := range read.Failures {
				if f.Task == "<fails>" {
					require.Equal(t, text, f.Text)
				}
			}
		}
		var trace struct{ TraceEvents []struct{ Name string } }
		require.NoError(t, json.Unmarshal(get(t, quiet, "format", "trace").Body.Bytes(), &trace))
		require.Contains(t, trace.TraceEvents, struct{ Name string }{"sleeps"})
		require.Contains(t, html(t, quiet), `href="?format=trace"`)
		saved := get(t, quiet, "format", "saved").Body.String()
		require.NotContains(t, saved, "planted")
		require.Contains(t, saved, "DecompressionStream", "it has its player")
		read, err := record.Open(strings.NewReader(saved))
		require.NoError(t, err)
		require.Len(t, read.Failures, 2)
		require.Len(t, read.Events, 3)
		without := asyncz.Handler(asyncz.Of(ctx))
		require.Equal(t, http.StatusNotFound, get(t, without, "format", "trace").Code)
		require.NotContains(t, html(t, without), "Last failures")
		require.Panics(t, func() { asyncz.Recorder(nil) })
	})
}
