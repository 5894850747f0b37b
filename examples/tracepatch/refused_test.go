//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patches has a log of a line uploaded to a server that answers a PATCH with
// answer for a minute, and then takes it. It returns when there was one, from
// the begin. A thousand end it, or a bubble would stand still for ever.
func patches(t *testing.T, answer http.HandlerFunc) (at []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := new(traceServer)
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPatch {
				at = append(at, time.Since(begin))
				if time.Since(begin) < time.Minute && len(at) < 1000 {
					answer(w, r)
					return
				}
			}
			s.ServeHTTP(w, r)
		})
		err := quiet().uploads(t.Context(), h, func(j *job, stop *stop) error {
			fmt.Fprint(j.log, "a line\n")
			return async.Sleep(stop.soft, 2*time.Minute)
		})
		require.NoError(t, err)
		log, _ := s.content()
		assert.Equal(t, "a line\n", log)
	})
	return at
}

// A server that takes nothing is not asked as fast as it can answer.
func TestServerThatTakesNothingIsNotHurried(t *testing.T) {
	for name, has := range map[string]string{"all it had": "0-0", "not even that": "0-3"} {
		t.Run(name, func(t *testing.T) {
			first := true
			at := patches(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Range", "0-0")
				if first { // from here on there is something to fall back from
					w.Header().Set("Range", has)
					first = false
				}
				w.WriteHeader(http.StatusAccepted)
			})
			assert.Less(t, len(at), 40)
		})
	}
}

// busy is the answer of a server that wants to be asked again later.
func busy(code int, after func() string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", after())
		w.WriteHeader(code)
	}
}

func TestRetryAfterIsObeyed(t *testing.T) {
	date := func() string { return time.Now().Add(70 * time.Second).UTC().Format(http.TimeFormat) }
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   time.Duration
	}{
		"seconds":  {busy(http.StatusTooManyRequests, func() string { return "67" }), 67 * time.Second},
		"a date":   {busy(http.StatusServiceUnavailable, date), 70 * time.Second},
		"too late": {busy(http.StatusServiceUnavailable, func() string { return "86400" }), 119 * time.Second}, // the job has ended
	} {
		t.Run(name, func(t *testing.T) {
			at := patches(t, tc.answer)
			require.Len(t, at, 2)
			assert.InDelta(t, tc.want, at[1]-at[0], float64(time.Second)) // a date has no less
		})
	}
}

// A server that lets us come at once, or says nonsense, is not asked more often
// than one that says nothing.
func TestRetryAfterIsAtLeastThePause(t *testing.T) {
	for _, value := range []string{"", "0", "-7", "soon", "Thu, 01 Jan 1970 00:00:00 GMT"} {
		t.Run(value, func(t *testing.T) {
			assert.Less(t, len(patches(t, busy(http.StatusServiceUnavailable, func() string { return value }))), 40)
		})
	}
}

// So it is with the report of the end.
func TestRetryAfterOfTheEndIsAtLeastThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, puts := new(traceServer), 0
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if puts++; r.Method == http.MethodPut && puts < 1000 {
				busy(http.StatusServiceUnavailable, func() string { return "0" })(w, r)
				return
			}
			s.ServeHTTP(w, r)
		})
		err := quiet().uploads(t.Context(), h, func(*job, *stop) error { return nil })
		require.ErrorAs(t, err, new(*uploadError))
		assert.Less(t, puts, 40)
	})
}

// What the server says is printed as one line, and no more than that.
func TestWordsOfTheServerAreQuoted(t *testing.T) {
	for status, want := range map[string]string{
		"404 Not Found":                   "/trace: 404 Not Found",
		"404 caf\u00e9":                   "/trace: 404 caf\u00e9",
		"404 \x1b[31m\nevil":              `/trace: "404 \x1b[31m\nevil"`,
		"404 \xff":                        `/trace: "404 \xff"`,
		"404 " + strings.Repeat("x", 1e6): "/trace: 404 " + strings.Repeat("x", 196) + "...",
	} {
		r := &http.Request{Method: http.MethodPatch, URL: &url.URL{Path: "/trace"}}
		err := refused(&http.Response{Status: status, StatusCode: http.StatusNotFound, Request: r}, 0)
		assert.EqualError(t, err, "PATCH "+want)
	}
	answer := &http.Response{Status: "202 \x1b", Header: http.Header{"Range": {"\x1b" + strings.Repeat("x", 1e6)}}}
	err := new(uploader).moveTo(answer, -1)
	assert.EqualError(t, err, `the server answers "202 \x1b" with Range "\x1b`+strings.Repeat("x", 199)+`...", which is no offset`)
}

// What has kept the log from the server is told in words about the log, once,
// and beside what became of the job.
func TestLostLogIsToldPlainly(t *testing.T) {
	late := "the log is not complete: the server has 0 of 7 bytes: not sent within 30s; last error: PATCH /trace: "
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		ran    error
		want   string
	}{
		"busy":               {busy(503, func() string { return "" }), nil, late + "503 Service Unavailable"},
		"busy, and a signal": {busy(503, func() string { return "" }), &cli.SignalError{Signal: syscall.SIGINT}, "stopped by signal: interrupt\n" + late + "503 Service Unavailable"},
		"final":              {busy(404, func() string { return "" }), nil, "the log is not complete: PATCH /trace: 404 Not Found"},
		"silent": {func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}, nil, late + "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPatch {
						tc.answer(w, r)
					}
				})
				err := quiet().uploads(t.Context(), h, func(j *job, _ *stop) error {
					fmt.Fprint(j.log, "a line\n")
					return tc.ran
				})
				assert.EqualError(t, err, tc.want)
			})
		})
	}
}

// The last flush is cut short, and the report of the end still has its budget:
// what is complete then is complete.
func TestLogThatIsCompleteLateIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, begin := quiet(), new(traceServer), time.Now()
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if time.Since(begin) < c.final+c.final/2 {
				panic(http.ErrAbortHandler)
			}
			s.ServeHTTP(w, r)
		})
		err := c.uploads(t.Context(), h, func(j *job, _ *stop) error {
			fmt.Fprint(j.log, "a line\n")
			return nil
		})
		require.NoError(t, err)
		log, state := s.content()
		assert.Equal(t, "a line\n", log)
		assert.Equal(t, "success", state)
	})
}
