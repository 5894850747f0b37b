//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A line each half second, for five minutes: none is seen later than a second
// after it was written.
func TestLineIsVisibleWithinASecond(t *testing.T) {
	assertVisible(t, "", time.Second)
}

func TestServerSaysHowFarItMayBeBehind(t *testing.T) {
	t.Run("shorter", func(t *testing.T) { assertVisible(t, "0.25", 250*time.Millisecond) })
	t.Run("longer", func(t *testing.T) { assertVisible(t, "20", 20*time.Second) })
	t.Run("within reason", func(t *testing.T) { assertVisible(t, "86400", time.Minute) })
	t.Run("but not nonsense", func(t *testing.T) { assertVisible(t, "-5", time.Second) })
}

func assertVisible(t *testing.T, interval string, within time.Duration) {
	t.Helper()
	const lines, apart = 600, 500 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var written, visible []time.Time
		s := &traceServer{interval: interval}
		s.seen = func(p []byte) {
			for range strings.Count(string(p), "\n") {
				visible = append(visible, time.Now())
			}
		}
		err := quiet().uploads(t.Context(), s, func(j *job, stop *stop) error {
			if err := async.Sleep(stop.soft, 2*time.Second); err != nil { // the first touch brings the interval
				return err
			}
			for i := range lines {
				written = append(written, time.Now())
				fmt.Fprintf(j.log, "line %d\n", i)
				if err := async.Sleep(stop.soft, apart); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(t, err)
		require.Len(t, visible, lines)
		var worst time.Duration
		for i := range lines {
			worst = max(worst, visible[i].Sub(written[i]))
		}
		// But for the nanosecond that an Await waits on at its end.
		assert.Equal(t, min(within, lines*apart), worst.Truncate(time.Microsecond))
	})
}

func TestEnoughIsSentBeforeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := quiet(), new(traceServer)
		c.size = 1000
		err := c.uploads(t.Context(), s, func(j *job, stop *stop) error {
			fmt.Fprint(j.log, strings.Repeat("x", 999))
			synctest.Wait()
			assert.Zero(t, s.requests)
			fmt.Fprint(j.log, strings.Repeat("y", 1501))
			synctest.Wait()
			assert.Equal(t, 3, s.requests, "no more than 1000 bytes each")
			return nil
		})
		require.NoError(t, err)
	})
}

var errEnd = errors.New("the end")

// Whatever goes wrong, the server has the log at the end, byte for byte: it has
// compared the checksum itself, and the test compares the bytes.
func TestBytesAreEqualAfterFaults(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := quiet(), &traceServer{fault: randomFaults(seed)}
				c.size = 1 << (seed % 12)
				var want strings.Builder
				err := c.uploads(t.Context(), s, func(j *job, stop *stop) error {
					w := io.MultiWriter(j.log, &want)
					for i := range 20 {
						fmt.Fprintf(w, "line %d of %d\n", i, seed)
						if err := async.Sleep(stop.soft, 300*time.Millisecond); err != nil {
							return err
						}
					}
					fmt.Fprint(w, "a last one without a newline")
					return nil
				})
				require.NoError(t, err)
				log, state := s.content()
				assert.Equal(t, want.String(), log)
				assert.Equal(t, "success", state)
			})
		})
	}
}

// Each fault by itself, and what it costs.
func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		method  string
		faults  []fault
		patches int
		asked   int
	}{
		{"PATCH", nil, 3, 1},
		{"PATCH", []fault{faultBusy}, 4, 1},
		{"PATCH", []fault{faultCut, faultCut, faultCut}, 6, 1},
		{"PATCH", []fault{faultNone, faultLost}, 4, 1},   // again, 416: it has it already
		{"PATCH", []fault{faultNone, faultForget}, 5, 1}, // 416: it has half, which is sent again
		{"PATCH", []fault{faultShort}, 4, 1},
		{"PATCH", []fault{faultNone, faultCorrupt}, 6, 2}, // 412, all over again
		{"PUT", []fault{faultLater, faultLater}, 3, 3},
		{"PUT", []fault{faultBusy}, 3, 1},
		{"PUT", []fault{faultCut}, 3, 1},
		{"PUT", []fault{faultLost}, 3, 2},
	} {
		t.Run(fmt.Sprint(tc.method, tc.faults), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := quiet(), &traceServer{fault: once(tc.method, tc.faults...)}
				c.size, c.touch = 10, time.Hour
				patches := 0
				h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPatch {
						patches++
					}
					s.ServeHTTP(w, r)
				})
				err := c.uploads(t.Context(), h, func(j *job, stop *stop) error {
					fmt.Fprint(j.log, "0123456789abcdefghij0123456789")
					return nil
				})
				require.NoError(t, err)
				log, _ := s.content()
				assert.Equal(t, "0123456789abcdefghij0123456789", log)
				assert.Equal(t, tc.asked, s.asked)
				assert.Equal(t, tc.patches, patches)
			})
		})
	}
}

// A server for which there is no use in trying again ends the job.
func TestServerThatWillNotHaveIt(t *testing.T) {
	gone := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	another := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Range", "0-1000000")
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
	})
	nonsense := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Range", "a lot")
		w.WriteHeader(http.StatusAccepted)
	})
	for name, tc := range map[string]struct {
		handler http.Handler
		want    string
	}{
		"gone":     {gone, "PATCH /trace: 404 Not Found"},
		"another":  {another, "it is another one"},
		"nonsense": {nonsense, "which is no offset"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := quiet().uploads(t.Context(), tc.handler, func(j *job, s *stop) error {
					fmt.Fprintln(j.log, "a line")
					err := async.Sleep(s.hard, time.Hour)
					assert.Error(t, err, "the job is not stopped")
					return err
				})
				require.ErrorAs(t, err, new(*uploadError))
				require.ErrorContains(t, err, tc.want)
				assert.Equal(t, 1, strings.Count(err.Error(), tc.want), "told once: %v", err)
			})
		})
	}
}

// A server that never agrees that the log is the right one is not sent it for
// ever.
func TestServerThatAlwaysCorrupts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &traceServer{fault: func(r *http.Request) fault { return faultCorrupt }}
		err := quiet().uploads(t.Context(), s, func(j *job, _ *stop) error {
			fmt.Fprintln(j.log, "a line")
			return nil
		})
		require.ErrorIs(t, err, errTooOften)
		assert.Equal(t, 4, s.asked)
	})
}

// The job's context is dead, and its log is uploaded all the same.
func TestLogIsCompleteAlthoughTheContextIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &traceServer{fault: once("PATCH", faultBusy, faultCut, faultLost)}
		ctx, cancel := context.WithCancelCause(t.Context())
		err := quiet().uploads(ctx, s, func(j *job, stop *stop) error {
			fmt.Fprintln(j.log, "first")
			cancel(errEnd)
			<-stop.hard.Done()
			fmt.Fprint(j.log, "last")
			return context.Cause(stop.hard)
		})
		require.ErrorIs(t, err, errEnd)
		require.NotErrorAs(t, err, new(*uploadError))
		log, state := s.content()
		assert.Equal(t, "first\nlast", log)
		assert.Equal(t, "the end", state)
	})
}

// A server that never answers costs what the flags say, and no more.
func TestFinalFlushHasABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quiet()
		begin := time.Now()
		hangs := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		err := c.uploads(t.Context(), hangs, func(j *job, _ *stop) error {
			fmt.Fprintln(j.log, "a line")
			return nil
		})
		require.ErrorAs(t, err, new(*uploadError))
		require.ErrorContains(t, err, "the server has 0 of 7 bytes")
		assert.Equal(t, 2*c.final, time.Since(begin).Truncate(time.Second))
	})
}

// A server that is away does not hold up the job.
func TestServerThatIsAwayDoesNotHoldUpTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var back atomic.Bool
		s := new(traceServer)
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !back.Load() {
				panic(http.ErrAbortHandler)
			}
			s.ServeHTTP(w, r)
		})
		c := quiet()
		big := strings.Repeat(strings.Repeat("x", 99)+"\n", 1000)
		err := c.uploads(t.Context(), h, func(j *job, stop *stop) error {
			for range 20 {
				fmt.Fprint(j.log, big)
			}
			assert.Zero(t, time.Since(begin))
			if err := async.Sleep(stop.soft, 10*time.Minute); err != nil {
				return err
			}
			back.Store(true)
			return nil
		})
		require.NoError(t, err)
		log, _ := s.content()
		assert.Len(t, log, 20*len(big))
	})
}
