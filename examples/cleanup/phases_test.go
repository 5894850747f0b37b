package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

// An api answers the requests for a path one after the other with the replies
// that it has for that path, and those after them with the last; without any, it
// removes. There is no network between, so that it can live in a bubble, where
// the times it records are exact.
type api struct {
	replies map[string][]reply
	begin   time.Time

	mu    sync.Mutex
	calls []call
}

// A call is a request, and when it came and was answered.
type call struct {
	path       string
	begun, end time.Duration
}

type reply func(w http.ResponseWriter, r *http.Request) error

func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, fmt.Errorf("a request with a dead context: %w", err)
	}
	begun := time.Since(a.begin)
	a.mu.Lock()
	replies := a.replies[r.URL.Path]
	n := 0
	for _, c := range a.calls {
		if c.path == r.URL.Path {
			n++
		}
	}
	i := len(a.calls)
	a.calls = append(a.calls, call{r.URL.Path, begun, -1})
	a.mu.Unlock()

	w := httptest.NewRecorder()
	var err error
	if len(replies) > 0 {
		err = replies[min(n, len(replies)-1)](w, r)
	}
	a.mu.Lock()
	a.calls[i].end = time.Since(a.begin)
	a.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func (a *api) of(path string) (calls []call) {
	for _, c := range a.calls {
		if c.path == path {
			calls = append(calls, c)
		}
	}
	return calls
}

func code(code int, header ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request) error {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		return nil
	}
}

func hangs(_ http.ResponseWriter, r *http.Request) error {
	<-r.Context().Done()
	return r.Context().Err()
}

func lost(http.ResponseWriter, *http.Request) error { return syscall.ECONNRESET }

func takes(d time.Duration) reply {
	return func(http.ResponseWriter, *http.Request) error { time.Sleep(d); return nil }
}

// bubble runs test with a cleaner of a, that gives up on a request after 3 s.
func bubble(t *testing.T, a *api, test func(ctx context.Context, c *cleaner, printed *bytes.Buffer)) {
	synctest.Test(t, func(t *testing.T) {
		a.begin = time.Now()
		out := new(bytes.Buffer)
		c := &cleaner{client: &http.Client{Transport: a, Timeout: 3 * time.Second}, parallel: 8, out: &cli.Out{W: out}}
		test(asynctest.Context(t), c, out)
		for _, c := range a.calls {
			assert.NotEqual(t, time.Duration(-1), c.end, "%s has ended", c.path)
		}
	})
}

// plan reads a plan in which paths stand for requests.
func plan(t *testing.T, text string) []phase {
	text = strings.NewReplacer("  /", "DELETE http://api.test/").Replace(text)
	p, err := parsePlan(strings.NewReader(text), 10*time.Second)
	require.NoError(t, err)
	return p
}

// cancelled is a job that is cancelled, with why.
func cancelled(ctx context.Context, cfg config, c *cleaner, plan []phase, why error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	return run(ctx, cfg, c, plan, func(ctx context.Context) error {
		cancel(why)
		<-ctx.Done()
		return ctx.Err()
	})
}

func TestPhasesRunInOrderAlthoughTheJobIsCancelled(t *testing.T) {
	a := &api{replies: map[string][]reply{
		"/a1": {takes(2 * time.Second)}, "/a2": {takes(time.Second)},
		"/b1": {code(503, "Retry-After", "2"), code(204)},
		"/c1": {takes(time.Second)},
	}}
	bubble(t, a, func(ctx context.Context, c *cleaner, printed *bytes.Buffer) {
		err := cancelled(ctx, config{}, c, plan(t, "phase a\n  /a1\n  /a2\nphase b\n  /b1\n  /b2\nphase c\n  /c1\n"), errors.New("enough"))
		assert.EqualError(t, err, "cancelled")
		assert.Equal(t, cli.StatusFailed, cli.Status(err))
		const s = time.Second
		assert.ElementsMatch(t, []call{
			{"/a1", 0, 2 * s}, {"/a2", 0, 1 * s},
			{"/b1", 2 * s, 2 * s}, {"/b2", 2 * s, 2 * s}, {"/b1", 4 * s, 4 * s},
			{"/c1", 4 * s, 5 * s},
		}, a.calls)
		assert.Equal(t, `job: cancelled
phase a, at most 10s
  removed DELETE http://api.test/a1, attempts: 1
  removed DELETE http://api.test/a2, attempts: 1
phase b, at most 10s
  removed DELETE http://api.test/b1, attempts: 2
  removed DELETE http://api.test/b2, attempts: 1
phase c, at most 10s
  removed DELETE http://api.test/c1, attempts: 1
`, printed.String())
	})
}

// The first phase hangs for all of its time. The second needs nearly all of its
// own, and has it.
func TestPhaseThatHangsEatsNobodyElsesTime(t *testing.T) {
	a := &api{replies: map[string][]reply{
		"/hangs": {hangs},
		"/slow":  {code(503, "Retry-After", "9"), code(200)},
	}}
	bubble(t, a, func(ctx context.Context, c *cleaner, _ *bytes.Buffer) {
		c.client.Timeout = 0 // nothing but the budget ends it
		err := cancelled(ctx, config{}, c, plan(t, "phase a 7s\n  /hangs\n  /plain\nphase b\n  /slow\nphase c 1s\n  /hangs\nphase d\n  /last\n"), errors.New("enough"))
		const s = time.Second
		assert.ElementsMatch(t, []call{
			{"/hangs", 0, 7 * s}, {"/plain", 0, 0},
			{"/slow", 7 * s, 7 * s}, {"/slow", 16 * s, 16 * s},
			{"/hangs", 16 * s, 17 * s},
			{"/last", 17 * s, 17 * s},
		}, a.calls)
		assert.EqualError(t, err, `cancelled
	2 of 5 not removed:
		a: DELETE http://api.test/hangs: no time left of 7s, attempts: 1
		c: DELETE http://api.test/hangs: no time left of 1s, attempts: 1`)
		assert.Equal(t, 17*s, time.Since(a.begin))
	})
}

func TestEveryErrorIsListed(t *testing.T) {
	a := &api{replies: map[string][]reply{
		"/in-use": {code(409)}, "/forbidden": {code(403)}, "/busy": {code(503)}, "/lost": {lost}, "/hangs": {hangs},
	}}
	bubble(t, a, func(ctx context.Context, c *cleaner, printed *bytes.Buffer) {
		err := run(ctx, config{}, c, plan(t, "phase a\n  /in-use\n  /fine\n  /busy\nphase b\n  /forbidden\nphase c 20s\n  /lost\n  /hangs\n"), func(context.Context) error { return nil })
		text := err.Error()
		for _, path := range []string{"/busy", "/lost", "/hangs"} { // whose attempts are a matter of jitter
			assert.Greater(t, len(a.of(path)), 3, path)
			text = strings.ReplaceAll(text, fmt.Sprintf("%s: no time left of", path), path+": late")
			text = strings.ReplaceAll(text, fmt.Sprintf("attempts: %d;", len(a.of(path))), "n;")
		}
		assert.Equal(t, `5 of 6 not removed:
		a: DELETE http://api.test/in-use: 409 Conflict
		a: DELETE http://api.test/busy: late 10s, n; last error: 503 Service Unavailable
		b: DELETE http://api.test/forbidden: 403 Forbidden
		c: DELETE http://api.test/lost: late 20s, n; last error: connection reset by peer
		c: DELETE http://api.test/hangs: late 20s, n; last error: no answer within 3s`, text)
		assert.Len(t, a.of("/in-use"), 1, "it is final")
		assert.ErrorIs(t, err, syscall.ECONNRESET)
		assert.Equal(t, statusLeft, cli.Status(err))
		assert.Equal(t, 5, strings.Count(printed.String(), "\n  LEFT "))
		assert.Equal(t, 1, strings.Count(printed.String(), "\n  removed "))
	})
}

// A scope lists so many errors and counts the rest. These are one of its errors.
func TestManyErrorsAreListedToo(t *testing.T) {
	a := &api{replies: map[string][]reply{}}
	text := "phase a\n"
	for i := range 100 {
		a.replies[fmt.Sprint("/", i)] = []reply{code(403)}
		text += fmt.Sprintf("  /%d\n", i)
	}
	bubble(t, a, func(ctx context.Context, c *cleaner, _ *bytes.Buffer) {
		err := cancelled(ctx, config{}, c, plan(t, text), errors.New("enough"))
		for i := range 100 {
			assert.ErrorContains(t, err, fmt.Sprintf("/%d: 403 Forbidden", i))
		}
		assert.ErrorContains(t, err, "100 of 100 not removed")
	})
}

func TestWhatPassesIsTriedAgain(t *testing.T) {
	a := &api{replies: map[string][]reply{
		"/busy":    {code(500), code(503), lost, code(429), code(408), code(204)},
		"/asks":    {code(503, "Retry-After", "4"), code(204)},
		"/gone":    {code(410)},
		"/unknown": {code(404)},
		"/hung":    {hangs, code(200)},
	}}
	bubble(t, a, func(ctx context.Context, c *cleaner, printed *bytes.Buffer) {
		require.NoError(t, run(ctx, config{}, c, plan(t, "phase a\n  /busy\n  /asks\n  /gone\n  /unknown\n  /hung\n"), func(context.Context) error { return nil }))
		assert.Len(t, a.of("/busy"), 6)
		assert.Equal(t, 4*time.Second, a.of("/asks")[1].begun)
		assert.Len(t, a.of("/hung"), 2)
		assert.Equal(t, 3*time.Second, a.of("/hung")[0].end, "the limit of a request")
		assert.NotContains(t, printed.String(), "LEFT")
		assert.Contains(t, printed.String(), "job: done\n")
	})
}

// With one request at a time, one that is waited for lets the others pass.
func TestPauseBetweenAttemptsKeepsNobodyFromHisTurn(t *testing.T) {
	a := &api{replies: map[string][]reply{"/busy": {code(503, "Retry-After", "9"), code(204)}, "/slow": {takes(2 * time.Second)}}}
	bubble(t, a, func(ctx context.Context, c *cleaner, _ *bytes.Buffer) {
		c.parallel = 1
		require.NoError(t, cancelledWell(ctx, c, plan(t, "phase a\n  /busy\n  /slow\n  /plain\n")))
		const s = time.Second
		assert.Equal(t, []call{{"/busy", 0, 0}, {"/slow", 0, 2 * s}, {"/plain", 2 * s, 2 * s}, {"/busy", 9 * s, 9 * s}}, a.calls)
	})
}

func TestNoMoreThanSoManyAtATime(t *testing.T) {
	a := &api{replies: map[string][]reply{}}
	text := "phase a\n"
	for i := range 6 {
		a.replies[fmt.Sprint("/", i)] = []reply{takes(time.Second)}
		text += fmt.Sprintf("  /%d\n", i)
	}
	bubble(t, a, func(ctx context.Context, c *cleaner, _ *bytes.Buffer) {
		c.parallel = 2
		require.NoError(t, cancelledWell(ctx, c, plan(t, text)))
		var begun []time.Duration
		for _, c := range a.calls {
			begun = append(begun, c.begun)
		}
		slices.Sort(begun)
		assert.Equal(t, []time.Duration{0, 0, 1e9, 1e9, 2e9, 2e9}, begun)
	})
}

// cancelledWell cleans up as after a job that was cancelled, and returns only
// what that has come to.
func cancelledWell(ctx context.Context, c *cleaner, plan []phase) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return c.cleanUp(ctx, plan)
}

func TestResourceWhoseTurnDoesNotComeIsLeft(t *testing.T) {
	a := &api{replies: map[string][]reply{"/hangs": {hangs}}}
	bubble(t, a, func(ctx context.Context, c *cleaner, _ *bytes.Buffer) {
		c.parallel = 1
		err := cancelledWell(ctx, c, plan(t, "phase a 2s\n  /hangs\n  /other\nphase b\n  /fine\n"))
		assert.EqualError(t, err, `2 of 3 not removed:
		a: DELETE http://api.test/hangs: no time left of 2s, attempts: 1
		a: DELETE http://api.test/other: no time left of 2s, attempts: 0`)
		assert.Len(t, a.of("/fine"), 1)
	})
}

func TestStatusIsThatOfTheJob(t *testing.T) {
	sig := &cli.SignalError{Signal: syscall.SIGTERM}
	for _, test := range []struct {
		name   string
		job    func(context.Context) error
		cfg    config
		left   bool
		status int
		text   string
	}{
		{"well", func(context.Context) error { return nil }, config{}, false, 0, ""},
		{"well, and something is left", func(context.Context) error { return nil }, config{}, true, 125, "1 of 1 not removed"},
		{"failed", func(context.Context) error { return &cli.ExitError{Code: 7, Err: errors.New("no")} }, config{}, false, 7, "no"},
		{"failed, and something is left", func(context.Context) error { return &cli.ExitError{Code: 7, Err: errors.New("no")} }, config{}, true, 7, "no\n\t1 of 1 not removed"},
		{"signalled", func(context.Context) error { return sig }, config{}, true, 143, "stopped by signal: terminated\n\t1 of 1 not removed"},
		{"late", func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }, config{timeout: time.Minute}, true, 124,
			"stopped after 1m0s, which is its limit\n\t1 of 1 not removed"},
		{"late by a limit of its own", func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }, async.Timeout(time.Second), async.Name("inner"))
		}, config{timeout: time.Minute}, false, 1, "async: inner: context deadline exceeded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := new(api)
			if test.left {
				a.replies = map[string][]reply{"/x": {code(403)}}
			}
			bubble(t, a, func(ctx context.Context, c *cleaner, _ *bytes.Buffer) {
				err := run(ctx, test.cfg, c, plan(t, "phase a\n  /x\n"), test.job)
				assert.Equal(t, test.status, cli.Status(err))
				if test.text == "" {
					assert.NoError(t, err)
				} else {
					assert.ErrorContains(t, err, test.text)
				}
				assert.Len(t, a.calls, 1)
			})
		})
	}
}

func TestJobThatPanicsIsCleanedUpAfter(t *testing.T) {
	a := new(api)
	bubble(t, a, func(ctx context.Context, c *cleaner, _ *bytes.Buffer) {
		assert.Panics(t, func() {
			_ = run(ctx, config{}, c, plan(t, "phase a\n  /x\n"), func(context.Context) error { panic("boom") })
		})
		assert.Len(t, a.calls, 1)
	})
}
