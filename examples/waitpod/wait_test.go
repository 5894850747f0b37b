package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

// A server answers the nth request with the nth reply, and those after it with
// the last. There is no network between, so that it can live in a bubble, where
// the times it records are exact.
type server struct {
	replies []reply
	begin   time.Time
	at      []time.Duration // when each request came, from the begin
}

type reply func(w http.ResponseWriter, r *http.Request) error

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.at = append(s.at, time.Since(s.begin))
	w := httptest.NewRecorder()
	if err := s.replies[min(len(s.at), len(s.replies))-1](w, r); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// phase is a pod in that phase. Headers follow it, as name and value.
func phase(phase string, header ...string) reply {
	return answerWith(http.StatusOK, fmt.Sprintf(`{"kind": "Pod", "status": {"phase": %q}}`, phase), header...)
}

func code(code int, header ...string) reply { return answerWith(code, "no pod", header...) }

func answerWith(code int, body string, header ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request) error {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, err := io.WriteString(w, body)
		return err
	}
}

func lost(http.ResponseWriter, *http.Request) error { return syscall.ECONNRESET }

func hangs(_ http.ResponseWriter, r *http.Request) error {
	<-r.Context().Done()
	return r.Context().Err()
}

const aPod = "http://cluster.test/pod"

// bubble runs test with a waiter that asks s every second, give or take a tenth,
// for at most five minutes. seen are the phases that it was told.
func bubble(t *testing.T, replies []reply, test func(ctx context.Context, w *waiter, s *server, seen *[]string)) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		s := &server{replies: replies, begin: time.Now()}
		w := &waiter{client: newClient(s, 10*time.Second), phase: running, interval: time.Second, timeout: 5 * time.Minute,
			changed: func(p status) { seen = append(seen, p.String()) },
			tell:    func(string, ...any) {}}
		test(asynctest.Context(t), w, s, &seen)
	})
}

// pauses are the times between the requests.
func (s *server) pauses() (pauses []time.Duration) {
	for i := range s.at[1:] {
		pauses = append(pauses, s.at[i+1]-s.at[i])
	}
	return pauses
}

func TestPodIsWaitedForThroughWhatPasses(t *testing.T) {
	bubble(t, []reply{lost, phase("Pending"), code(500), phase("Unknown"), code(408), phase("Pending"), phase("Pending"), phase("Running")},
		func(ctx context.Context, w *waiter, s *server, seen *[]string) {
			require.NoError(t, w.wait(ctx, aPod))
			assert.Equal(t, []string{"Pending", "Unknown", "Pending", "Running"}, *seen)
			assert.Zero(t, s.at[0], "the first request is made at once")
			for _, pause := range s.pauses() {
				assert.InEpsilon(t, time.Second, pause, 0.11)
			}
		})
}

func TestRetryAfterIsObeyed(t *testing.T) {
	for _, test := range []struct {
		name  string
		first reply
		want  time.Duration
	}{
		{"seconds, busy", code(503, "Retry-After", "70"), 70 * time.Second},
		{"seconds, too many", code(429, "Retry-After", "70"), 70 * time.Second},
		{"seconds, beside a phase", phase("Pending", "Retry-After", "70"), 70 * time.Second},
		{"a date", func(w http.ResponseWriter, r *http.Request) error {
			return code(503, "Retry-After", time.Now().Add(90*time.Second).UTC().Format(http.TimeFormat))(w, r)
		}, 90 * time.Second},
		{"a date by another clock", func(w http.ResponseWriter, r *http.Request) error {
			there := time.Now().Add(-time.Hour).UTC()
			return code(503, "Date", there.Format(http.TimeFormat), "Retry-After", there.Add(90*time.Second).Format(http.TimeFormat))(w, r)
		}, 90 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, []reply{test.first, phase("Running")}, func(ctx context.Context, w *waiter, s *server, _ *[]string) {
				require.NoError(t, w.wait(ctx, aPod))
				assert.Equal(t, []time.Duration{test.want}, s.pauses())
			})
		})
	}
}

// A server that lets us come back sooner does not have us ask more often than we
// were told to.
func TestRetryAfterIsAtLeastTheInterval(t *testing.T) {
	for _, value := range []string{"0", "Thu, 01 Jan 1970 00:00:00 GMT", "nonsense"} {
		bubble(t, []reply{code(503, "Retry-After", value), phase("Running")}, func(ctx context.Context, w *waiter, s *server, _ *[]string) {
			require.NoError(t, w.wait(ctx, aPod))
			assert.InEpsilon(t, time.Second, s.pauses()[0], 0.11)
		})
	}
}

// The interval of the server lasts until it says another, and is kept to without
// jitter: that could be too early.
func TestIntervalOfTheServerIsObeyed(t *testing.T) {
	const interval = "X-Poll-Interval"
	bubble(t, []reply{phase("Pending", interval, "20"), phase("Pending"), code(503), lost,
		code(503, "Retry-After", "5"), code(503, "Retry-After", "50"), phase("Pending", interval, "7"), phase("Pending"), phase("Running")},
		func(ctx context.Context, w *waiter, s *server, _ *[]string) {
			require.NoError(t, w.wait(ctx, aPod))
			assert.Equal(t, []time.Duration{
				20 * time.Second, 20 * time.Second, 20 * time.Second, 20 * time.Second,
				20 * time.Second, 50 * time.Second, 7 * time.Second, 7 * time.Second,
			}, s.pauses())
		})
}

func TestFinalAnswerEndsTheWaitAtOnce(t *testing.T) {
	for _, test := range []struct {
		name string
		want string // to wait for
		last reply
		err  string
	}{
		{"failed", running, answerWith(200, `{"status": {"phase": "Failed", "reason": "Evicted"}}`), "the pod has ended; last phase: Failed (Evicted); requests: 2"},
		{"succeeded before it was seen to run", running, phase("Succeeded"), "the pod has ended; last phase: Succeeded; requests: 2"},
		{"failed, though it was to succeed", succeeded, phase("Failed"), "the pod has ended; last phase: Failed; requests: 2"},
		{"not found", running, code(404, "Retry-After", "100"), "404 Not Found; last phase: Pending; requests: 2"},
		{"elsewhere", running, code(302, "Location", "/pod"), "302 Found; last phase: Pending; requests: 2"},
		{"forbidden", running, code(403), "403 Forbidden; last phase: Pending; requests: 2"},
		{"no JSON", running, answerWith(200, "<html>"), "the answer is not a pod: invalid character '<' looking for beginning of value; last phase: Pending; requests: 2"},
		{"endless", running, answerWith(200, strings.Repeat(" ", maxPod+1)), "the answer is not a pod: it has more than 4 MB; last phase: Pending; requests: 2"},
		{"another JSON", running, answerWith(200, `{"items": []}`), "the answer is not a pod: it has no status.phase; last phase: Pending; requests: 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, []reply{phase("Pending"), test.last}, func(ctx context.Context, w *waiter, s *server, _ *[]string) {
				w.phase = test.want
				err := w.wait(ctx, aPod)
				assert.EqualError(t, err, test.err)
				assert.Equal(t, cli.StatusFailed, cli.Status(err))
				assert.Len(t, s.at, 2)
				assert.Equal(t, s.at[1], time.Since(s.begin), "at once")
			})
		})
	}
}

func TestSucceededCanBeWaitedFor(t *testing.T) {
	bubble(t, []reply{phase("Pending"), phase("Running"), phase("Succeeded")}, func(ctx context.Context, w *waiter, _ *server, seen *[]string) {
		w.phase = succeeded
		require.NoError(t, w.wait(ctx, aPod))
		assert.Equal(t, []string{"Pending", "Running", "Succeeded"}, *seen)
	})
}

func TestDeadlineTellsTheLastPhaseAndTheLastError(t *testing.T) {
	pulling := answerWith(200, `{"status": {"phase": "Pending", "containerStatuses": [{}, {"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}}`)
	for _, test := range []struct {
		name     string
		replies  []reply
		interval time.Duration // 0: that of all tests
		err      string
	}{
		{"a phase, then errors", []reply{pulling, code(503, "Retry-After", "250"), code(502, "Retry-After", "250")}, 0,
			"not Running within 5m0s; last phase: Pending (ImagePullBackOff); requests: 3; last error: 502 Bad Gateway"},
		{"a phase", []reply{phase("Pending", "Retry-After", "200")}, 0, "not Running within 5m0s; last phase: Pending; requests: 2"},
		{"nothing", []reply{lost}, 130 * time.Second, "not Running within 5m0s; no phase was seen; requests: 3; last error: connection reset by peer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, test.replies, func(ctx context.Context, w *waiter, s *server, _ *[]string) {
				if test.interval > 0 {
					w.interval = test.interval
				}
				err := w.wait(ctx, aPod)
				assert.EqualError(t, err, test.err)
				assert.EqualError(t, err, test.err, "it says so every time")
				assert.Equal(t, cli.StatusDeadline, cli.Status(err))
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, 5*time.Minute, time.Since(s.begin))
			})
		})
	}
}

func TestRequestThatHangsIsTold(t *testing.T) {
	bubble(t, []reply{hangs}, func(ctx context.Context, w *waiter, _ *server, _ *[]string) {
		w.timeout = 15 * time.Second
		assert.EqualError(t, w.wait(ctx, aPod), "not Running within 15s; no phase was seen; requests: 2; last error: no answer within 10s")
	})
}

func TestRequestThatHangsIsMadeAgain(t *testing.T) {
	bubble(t, []reply{hangs, phase("Running")}, func(ctx context.Context, w *waiter, s *server, _ *[]string) {
		require.NoError(t, w.wait(ctx, aPod))
		assert.InEpsilon(t, 11*time.Second, s.pauses()[0], 0.01)
	})
}

// half is an answer that breaks off.
type half struct{ io.Reader }

func (half) Close() error { return nil }

func TestAnswerThatBreaksOffIsAskedForAgain(t *testing.T) {
	bubble(t, nil, func(ctx context.Context, w *waiter, _ *server, _ *[]string) {
		n := 0
		w.client.Transport = roundTrip(func(*http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return &http.Response{StatusCode: 200, Body: half{io.MultiReader(strings.NewReader(`{"status": {"pha`), failing{})}}, nil
			}
			return &http.Response{StatusCode: 200, Body: half{strings.NewReader(`{"status": {"phase": "Running"}}`)}}, nil
		})
		require.NoError(t, w.wait(ctx, aPod))
		assert.Equal(t, 2, n)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Whatever it is that it waits for: the server, which asked for an hour, or an
// answer that does not come.
func TestCancelledWaitEndsAtOnce(t *testing.T) {
	for name, second := range map[string]reply{"between requests": code(503, "Retry-After", "3600"), "in a request": hangs} {
		t.Run(name, func(t *testing.T) {
			bubble(t, []reply{phase("Pending"), second}, func(ctx context.Context, w *waiter, s *server, _ *[]string) {
				w.timeout, w.client.Timeout = 24*time.Hour, 0
				ctx, cancel := context.WithCancelCause(ctx)
				why := &cli.SignalError{Signal: syscall.SIGTERM}
				time.AfterFunc(34567*time.Millisecond, func() { cancel(why) })
				err := w.wait(ctx, aPod)
				assert.Equal(t, 34567*time.Millisecond, time.Since(s.begin))
				assert.ErrorIs(t, err, why)
				assert.ErrorContains(t, err, "stopped by signal: terminated; last phase: Pending; requests: 2")
				assert.Equal(t, 143, cli.Status(err))
				assert.Len(t, s.at, 2)
			})
		})
	}
}

func TestWaitThatIsCancelledWithoutASignalSaysSo(t *testing.T) {
	bubble(t, []reply{phase("Pending", "Retry-After", "100")}, func(ctx context.Context, w *waiter, s *server, _ *[]string) {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(time.Second, func() { cancel(errors.New("enough")) })
		assert.EqualError(t, w.wait(ctx, aPod), "cancelled; last phase: Pending; requests: 1")
		assert.EqualError(t, w.wait(ctx, aPod), "cancelled; no phase was seen; requests: 0")
		assert.Len(t, s.at, 1)
	})
}

func TestPollIntervalIsRead(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 0, "60": time.Minute, "-1": 0, "often": 0} {
		assert.Equal(t, want, pollInterval(http.Header{"X-Poll-Interval": {value}}))
	}
}
