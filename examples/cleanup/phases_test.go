//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"cleanup": main})
}

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: clitest.Commands[*testscript.TestScript](), Setup: clitest.Setup[*testscript.Env]})
}

// An api answers without a network, so that it can live in a bubble, where times are exact.
type api func(r *http.Request) (status int, header http.Header, err error)

func (a api) RoundTrip(r *http.Request) (*http.Response, error) {
	status, header, err := a(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: header, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// hang answers when nobody waits for it any longer.
func hang(r *http.Request) (int, http.Header, error) {
	<-r.Context().Done()
	return 0, nil, r.Context().Err()
}

// cleaned cleans up in a bubble, in the exit hook of a job that was cancelled. It returns what
// was printed, what is left, and how long it took.
func cleaned(t *testing.T, parallel int, a api, plan ...phase) (out string, took time.Duration, left error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		c := &cleaner{client: &http.Client{Transport: a, Timeout: 5 * time.Second}, parallel: parallel, out: &b}
		ctx, cancel := context.WithCancel(asynctest.Context(t))
		begin := time.Now()
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.OnExit(ctx, func(ctx context.Context, _ error) error {
				left = c.cleanUp(ctx, plan)
				return nil
			})
			cancel()
			return nil
		}, async.HookTimeout(total(plan)))
		out, took = b.String(), time.Since(begin)
	})
	return out, took, left
}

// The job is cancelled, and a phase hangs: each has its time all the same, and each error is
// listed.
func TestPhaseThatHangsEatsNobodyElsesTime(t *testing.T) {
	var order []string
	var asked atomic.Int64
	out, took, left := cleaned(t, 1, func(r *http.Request) (int, http.Header, error) {
		order = append(order, r.URL.Path)
		switch r.URL.Path {
		case "/hang":
			asked.Add(1)
			return hang(r)
		case "/in-use":
			return http.StatusConflict, nil, nil
		case "/gone":
			return http.StatusNotFound, nil, nil
		}
		time.Sleep(time.Second)
		return http.StatusNoContent, nil, nil
	},
		phase{"first", 12 * time.Second, []string{"http://a/hang"}},
		phase{"second", 2 * time.Second, []string{"http://a/slow", "http://a/gone"}},
		phase{"third", time.Second, []string{"http://a/in-use", "http://a/hang"}})
	assert.Equal(t, []string{"/hang", "/hang", "/hang", "/slow", "/gone", "/in-use", "/hang"}, order)
	assert.Equal(t, 14*time.Second, took)
	assert.Equal(t, `phase first, at most 12s
  LEFT    http://a/hang
phase second, at most 2s
  removed http://a/slow
  removed http://a/gone
phase third, at most 1s
  LEFT    http://a/in-use
  LEFT    http://a/hang
`, out)
	var all *leftError
	require.ErrorAs(t, left, &all)
	require.Len(t, all.errs, 3)
	assert.ErrorContains(t, all.errs[0], "first: async: http://a/hang: no answer after 3 attempts")
	assert.ErrorContains(t, all.errs[0], "no answer within 5s")
	assert.ErrorContains(t, all.errs[1], "third: async: http://a/in-use: ")
	assert.ErrorContains(t, all.errs[1], "Conflict")
}

// A pause between attempts, which the server may ask for, keeps nobody from his turn, although
// one request is made at a time.
func TestWhatPassesIsTriedAgainAndKeepsNobodyWaiting(t *testing.T) {
	for _, passing := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusRequestTimeout, 0} {
		var others atomic.Int64
		busy := 0
		out, took, left := cleaned(t, 1, func(r *http.Request) (int, http.Header, error) {
			if r.URL.Path != "/busy" {
				others.Add(1)
				return http.StatusOK, nil, nil
			}
			if busy++; busy < 3 {
				if passing == 0 {
					return 0, nil, errors.New("reset")
				}
				return passing, http.Header{"Retry-After": {"60"}}, nil
			}
			assert.EqualValues(t, 2, others.Load(), "before the third attempt")
			return http.StatusGone, nil, nil
		}, phase{"a", time.Hour, []string{"http://a/busy", "http://a/1", "http://a/2"}})
		assert.NoError(t, left)
		assert.Equal(t, 3, strings.Count(out, "removed"))
		if passing != 0 {
			assert.Equal(t, 2*time.Minute, took)
		}
	}
}

func TestNoMoreThanSoManyAtATime(t *testing.T) {
	var now, most atomic.Int64
	var urls []string
	for range 50 {
		urls = append(urls, "http://a/x")
	}
	_, _, left := cleaned(t, 3, func(*http.Request) (int, http.Header, error) {
		most.Store(max(most.Load(), now.Add(1)))
		time.Sleep(time.Second)
		now.Add(-1)
		return http.StatusOK, nil, nil
	}, phase{"a", time.Hour, urls})
	assert.NoError(t, left)
	assert.EqualValues(t, 3, most.Load())
}

func TestPlanIsRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "plan")
	for text, want := range map[string]any{
		"# a plan\n\nphase a 20s\n  http://a/1\nhttps://a/2\nphase b\n": []phase{{"a", 20 * time.Second, []string{"http://a/1", "https://a/2"}}, {"b", time.Minute, nil}},
		"http://a/1":               `:1: a plan begins with a phase, like "phase containers 20s"`,
		"phase":                    `:1: a phase has a name and perhaps a time, like "phase containers 20s"`,
		"phase a soon":             `:1: the time of a phase is one like 20s or 2m, not "soon"`,
		"phase a\n\nftp://a/1":     `:3: "ftp://a/1" is not a URL like http://127.0.0.1:8080/volumes/data`,
		"phase a\nDELETE http://a": `:2: "DELETE http://a" is not a URL like http://127.0.0.1:8080/volumes/data`,
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		plan, err := readPlan(name, time.Minute)
		if fault, wrong := want.(string); wrong {
			assert.EqualError(t, err, name+fault)
		} else {
			assert.NoError(t, err)
			assert.Equal(t, want, plan)
		}
	}
}
