//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/examples/internal/clitest"
)

// However a server says that it has taken nothing, it is not asked at once, nor
// at once after that: a minute holds some dozen requests, not a hundred thousand.
func TestServerThatTakesNothingIsNotHurried(t *testing.T) {
	unavailable := func(after string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	for name, h := range map[string]http.HandlerFunc{
		"202 and no more than before": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Range", "0-0")
			w.WriteHeader(http.StatusAccepted)
		},
		"416 and no more than before": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Range", "0-0")
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		},
		"503, Retry-After 0":  unavailable("0"),
		"503, Retry-After -7": unavailable("-7"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				count := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPatch {
						asked++
						h(w, r)
					}
				})
				err := quiet().uploads(t.Context(), count, func(j *job, s *stop) error {
					fmt.Fprintln(j.log, "a line")
					return async.Sleep(s.soft, time.Minute)
				})
				require.ErrorAs(t, err, new(*uploadError))
				assert.NotContains(t, err.Error(), "no answer, attempts")
				assert.Contains(t, err.Error(), "no time left; last error: ")
				assert.Greater(t, asked, 5)
				assert.Less(t, asked, 100)
			})
		})
	}
}

func TestRetryAfterMayBeADate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(traceServer)
		var at []time.Time
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPatch {
				if at = append(at, time.Now()); len(at) == 1 {
					w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
					w.Header().Set("Retry-After", time.Now().Add(17*time.Second).UTC().Format(http.TimeFormat))
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
			}
			s.ServeHTTP(w, r)
		})
		require.NoError(t, quiet().uploads(t.Context(), h, func(j *job, _ *stop) error {
			fmt.Fprintln(j.log, "a line")
			return nil
		}))
		require.Len(t, at, 2)
		assert.Equal(t, 17*time.Second, at[1].Sub(at[0]))
	})
}

func TestRedirectIsNoAnswer(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusFound))
	defer server.Close()
	p := clitest.Start(t, nil, "tracepatch", "-url", server.URL, "-script", "echo hello", "-after", "")
	assert.Equal(t, statusIncomplete, p.Wait())
	assert.Contains(t, p.Stderr(), "PATCH /trace: 302 Found")
}
