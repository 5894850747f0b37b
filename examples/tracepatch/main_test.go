//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/clitest"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	// The first Notify of a process starts a goroutine that stays for good. It
	// must not be born in a synctest bubble.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	clitest.Main(m, map[string]func(){"tracepatch": main})
}

func TestScripts(t *testing.T) { clitest.Scripts(t, testscript.Params{}) }

// content returns the log that the server has, and the state of the job that it
// was told.
func (s *traceServer) content() (log, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.log), s.state
}

// say changes what the server says about the job.
func (s *traceServer) say(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// once returns faults that come one after the other, for requests with a method.
func once(method string, all ...fault) func(*http.Request) fault {
	return func(r *http.Request) fault {
		if r.Method != method || len(all) == 0 {
			return faultNone
		}
		what := all[0]
		all = all[1:]
		return what
	}
}

// A direct is a transport that calls a handler on the goroutine of the client,
// so that both may live in a bubble.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	defer func() {
		if v := recover(); v != nil {
			if v != http.ErrAbortHandler {
				panic(v)
			}
			err = errors.New("connection reset")
		}
	}()
	defer func() { _ = r.Body.Close() }()
	d.handler.ServeHTTP(w, r)
	answer = w.Result()
	answer.Request = r
	return answer, nil
}

// until waits until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	_, err := async.Poll(t.Context(), async.Every(5*time.Millisecond), func(context.Context) (struct{}, bool, error) {
		return struct{}{}, holds(), nil
	}).Await(t.Context(), time.Minute)
	require.NoError(t, err, what)
}

// quiet is a config with which a job of a test is uploaded.
func quiet() *config {
	return &config{age: time.Second, touch: time.Second, grace: time.Second, final: 30 * time.Second, size: 64 << 10, limit: 4 << 20}
}

// uploads has a job run in a bubble and its log uploaded to a handler.
func (c *config) uploads(ctx context.Context, h http.Handler, run func(j *job, s *stop) error) error {
	return c.upload(ctx, &http.Client{Transport: direct{h}, Timeout: 30 * time.Second}, "http://server", func(string, ...any) {},
		func(j *job, s *stop) error {
			j.state = "success"
			err := run(j, s)
			if err != nil {
				j.state = fmt.Sprint(err)
			}
			return err
		})
}
