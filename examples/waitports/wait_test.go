package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

var errRefused = errors.New("connection refused")

// A network answers at once, or as its hosts do. In a bubble the times are exact.
type network struct {
	hosts   map[string]func(ctx context.Context) error // by address; the rest refuse
	dialing atomic.Int64                               // at this moment

	mu    sync.Mutex
	times map[string][]time.Time // of the attempts
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.dialing.Add(1)
	defer n.dialing.Add(-1)
	n.mu.Lock()
	if n.times == nil {
		n.times = make(map[string][]time.Time)
	}
	n.times[address] = append(n.times[address], time.Now())
	n.mu.Unlock()
	host := n.hosts[address]
	if host == nil {
		return nil, errRefused
	}
	if err := host(ctx); err != nil {
		return nil, err
	}
	conn, other := net.Pipe()
	_ = other.Close()
	return conn, nil
}

// opens is a host that refuses until d has passed.
func opens(d time.Duration) func(context.Context) error {
	at := time.Now().Add(d)
	return func(context.Context) error {
		if time.Now().Before(at) {
			return errRefused
		}
		return nil
	}
}

// drops is a host that answers nothing.
func drops(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// stubborn is a host that takes a second to notice that nobody wants to know.
func stubborn(ctx context.Context) error {
	<-ctx.Done()
	time.Sleep(time.Second)
	return ctx.Err()
}

// pattern is a host that accepts (+) or refuses (-) as the pattern says, again
// and again.
func pattern(p string) func(context.Context) error {
	n := -1
	return func(context.Context) error {
		if n++; p[n%len(p)] == '+' {
			return nil
		}
		return errRefused
	}
}

// bubble runs test in a bubble, with a waiter on n.
func bubble(t *testing.T, n *network, test func(ctx context.Context, w *waiter)) {
	synctest.Test(t, func(t *testing.T) {
		w := &waiter{dial: n.dial, interval: time.Second, steady: 1, tell: func(string, ...any) {}}
		test(asynctest.Context(t), w)
		assert.Zero(t, n.dialing.Load(), "what was started has ended")
	})
}

// targets reads targets with a default limit of 30 s.
func targets(t *testing.T, args ...string) []target {
	all, err := parseTargets(args, 30*time.Second)
	require.NoError(t, err)
	return all
}

func words(outcomes []outcome) (words []string) {
	for _, o := range outcomes {
		words = append(words, o.name+" "+o.word())
	}
	return words
}

func TestEachTargetHasItsLimitAndItsOutcomeInOrder(t *testing.T) {
	n := new(network)
	bubble(t, n, func(ctx context.Context, w *waiter) {
		n.hosts = map[string]func(context.Context) error{"late:1": opens(3 * time.Second), "up:1": opens(0), "drops:1": drops}
		begin := time.Now()
		got := w.wait(ctx, targets(t, "never:1@7s", "late:1", "drops:1@4s", "up:1", "soon:1@100ms"), false)
		assert.Equal(t, 7*time.Second, time.Since(begin), "no longer than the longest limit")
		assert.Equal(t, []string{"never:1 down", "late:1 up", "drops:1 down", "up:1 up", "soon:1 down"}, words(got))
		assert.Equal(t, 7*time.Second, got[0].took)
		assert.GreaterOrEqual(t, got[1].took, 3*time.Second)
		assert.LessOrEqual(t, got[1].took, 3*time.Second+1200*time.Millisecond, "an interval and its jitter")
		assert.Equal(t, 4*time.Second, got[2].took)
		assert.Zero(t, got[3].took)
		assert.Equal(t, 100*time.Millisecond, got[4].took)
		assert.Equal(t, "limit 7s; last: connection refused", got[0].why())
		assert.Equal(t, "limit 4s; no answer", got[2].why())
		assert.Empty(t, got[3].why())
		for i, attempts := range []int{len(n.times["never:1"]), len(n.times["late:1"]), 1, 1} {
			assert.Equal(t, attempts, got[i].attempts)
		}
	})
}

func TestHostThatDropsIsAskedAgain(t *testing.T) {
	n := &network{hosts: map[string]func(context.Context) error{"drops:1": drops}}
	bubble(t, n, func(ctx context.Context, w *waiter) {
		got := w.wait(ctx, targets(t, "drops:1@12s"), false)
		assert.Equal(t, 3, got[0].attempts)
		assert.Equal(t, 12*time.Second, got[0].took)
		assert.Equal(t, "limit 12s; last: context deadline exceeded", got[0].why())
	})
}

// A lateContext has a deadline, which has passed, and has not been told yet.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// The timer of a connection may be faster than that of the context.
func TestAttemptThatTheLimitEndsIsNotWhyThePortIsDown(t *testing.T) {
	n := &network{hosts: map[string]func(context.Context) error{"early:1": func(context.Context) error { return os.ErrDeadlineExceeded }}}
	bubble(t, n, func(ctx context.Context, w *waiter) {
		a := &attempts{waiter: w, target: targets(t, "early:1")[0], last: errRefused}
		_, done, err := a.probe(lateContext{ctx, time.Now()})
		assert.False(t, done)
		assert.Error(t, err)
		assert.Equal(t, errRefused, a.last)
	})
}

func TestPausesGrowToTheInterval(t *testing.T) {
	n := new(network)
	bubble(t, n, func(ctx context.Context, w *waiter) {
		w.wait(ctx, targets(t, "never:1"), false)
		times := n.times["never:1"]
		require.Greater(t, len(times), 20)
		for i, before := range times[:len(times)-1] {
			want := min(10*time.Millisecond<<min(i, 20), time.Second)
			assert.InEpsilon(t, want, times[i+1].Sub(before), 0.21, "pause %d", i)
		}
	})
}

func TestFlappingPortIsUpOnlyWhenItIsSteady(t *testing.T) {
	for _, test := range []struct {
		pattern string
		steady  int
		word    string
	}{
		{"-+-+", 1, "up"},
		{"+-", 2, "down"},
		{"++-", 3, "down"},
		{"++-++++", 4, "up"},
	} {
		t.Run(fmt.Sprint(test.pattern, test.steady), func(t *testing.T) {
			n := &network{hosts: map[string]func(context.Context) error{"flapping:1": pattern(test.pattern)}}
			bubble(t, n, func(ctx context.Context, w *waiter) {
				w.steady = test.steady
				got := w.wait(ctx, targets(t, "flapping:1", "never:1@1s"), false)
				assert.Equal(t, []string{"flapping:1 " + test.word, "never:1 down"}, words(got))
				if test.word == "down" {
					assert.Equal(t, 30*time.Second, got[0].took)
					assert.Equal(t, fmt.Sprintf("limit 30s; accepted %d of %d connections, never enough in a row; last: connection refused",
						got[0].accepted, got[0].attempts), got[0].why())
					assert.Positive(t, got[0].accepted)
				}
			})
		})
	}
}

func TestAnyEndsWithTheFirstAndCancelsAndJoinsTheRest(t *testing.T) {
	n := new(network)
	bubble(t, n, func(ctx context.Context, w *waiter) {
		n.hosts = map[string]func(context.Context) error{"late:1": opens(2 * time.Second), "later:1": opens(time.Minute), "stubborn:1": stubborn}
		begin := time.Now()
		got := w.wait(ctx, targets(t, "never:1", "stubborn:1@1h", "late:1", "later:1@1h", "short:1@1s"), true)
		assert.Equal(t, []string{"never:1 unneeded", "stubborn:1 unneeded", "late:1 up", "later:1 unneeded", "short:1 down"}, words(got))
		assert.ErrorIs(t, got[3].err, async.ErrDecided)
		assert.Equal(t, "another one is up; last: connection refused", got[0].why())
		assert.Equal(t, "limit 1s; last: connection refused", got[4].why())
		assert.Equal(t, got[2].took, got[0].took, "cancelled when it was decided")
		assert.Zero(t, n.dialing.Load(), "the stubborn one has ended")
		assert.Less(t, time.Since(begin), 9*time.Second)
	})
}

func TestAnyOfNoneTellsOfAll(t *testing.T) {
	bubble(t, new(network), func(ctx context.Context, w *waiter) {
		got := w.wait(ctx, targets(t, "a:1@2s", "b:1@1s"), true)
		assert.Equal(t, []string{"a:1 down", "b:1 down"}, words(got))
		assert.Equal(t, 2*time.Second, got[0].took)
		assert.Equal(t, time.Second, got[1].took)
	})
}

// One is between two attempts when it is told to stop, one is in the middle of
// one, one is up already.
func TestCancelledWaitTellsAtOnceWhatItKnows(t *testing.T) {
	for _, any := range []bool{false, true} {
		t.Run(fmt.Sprint("any ", any), func(t *testing.T) {
			n := &network{hosts: map[string]func(context.Context) error{"drops:1": drops}}
			bubble(t, n, func(ctx context.Context, w *waiter) {
				if !any {
					n.hosts["up:1"] = opens(0)
				}
				enough := errors.New("enough")
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(1234*time.Millisecond, func() { cancel(enough) })
				got := w.wait(ctx, targets(t, "never:1", "up:1", "drops:1"), any)
				if any {
					assert.Equal(t, []string{"never:1 stopped", "up:1 stopped", "drops:1 stopped"}, words(got))
				} else {
					assert.Equal(t, []string{"never:1 stopped", "up:1 up", "drops:1 stopped"}, words(got))
				}
				for _, i := range []int{0, 2} {
					assert.ErrorIs(t, got[i].err, enough)
					assert.Equal(t, 1234*time.Millisecond, got[i].took)
				}
				assert.Contains(t, got[0].why(), "last: connection refused")
			})
		})
	}
}

func TestWaitThatIsCancelledBeforeItBeginsTellsSo(t *testing.T) {
	for _, any := range []bool{false, true} {
		bubble(t, new(network), func(ctx context.Context, w *waiter) {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(errors.New("enough"))
			got := w.wait(ctx, targets(t, "a:1", "b:1"), any)
			assert.Equal(t, []string{"a:1 stopped", "b:1 stopped"}, words(got))
		})
	}
}

func TestChangesAreTold(t *testing.T) {
	n := &network{hosts: map[string]func(context.Context) error{"a:1": pattern("--+--++++")}}
	bubble(t, n, func(ctx context.Context, w *waiter) {
		var told []string
		w.steady = 3
		w.tell = func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
		w.wait(ctx, targets(t, "x=a:1"), false)
		assert.Equal(t, strings.TrimSpace(`
x is not up: connection refused
x accepts connections, 1 of 3
x is not up: connection refused
x accepts connections, 1 of 3
x accepts connections, 2 of 3
x is up`), strings.Join(told, "\n"))
	})
}

func TestTargetsAreRead(t *testing.T) {
	for arg, want := range map[string]target{
		"127.0.0.1:80":          {"127.0.0.1:80", "127.0.0.1:80", time.Minute},
		"db=127.0.0.1:5432":     {"db", "127.0.0.1:5432", time.Minute},
		"db=127.0.0.1:5432@2s":  {"db", "127.0.0.1:5432", 2 * time.Second},
		"db=[::1]:5432@1m30s":   {"db", "[::1]:5432", 90 * time.Second},
		"localhost:https":       {"localhost:https", "localhost:https", time.Minute},
		"a name=example.test:1": {"a name", "example.test:1", time.Minute},
	} {
		got, err := parseTarget(arg, time.Minute)
		assert.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for arg, want := range map[string]string{
		"":                 `"" is not host:port`,
		"db":               `"db" is not host:port`,
		"db=":              `"" is not host:port`,
		"=127.0.0.1:1":     "no name before =",
		":80":              `":80" is not host:port`,
		"127.0.0.1:":       "is not host:port",
		"127.0.0.1:0":      "is not host:port",
		"127.0.0.1:65536":  "is not host:port",
		"127.0.0.1:-1":     "is not host:port",
		"127.0.0.1:nosuch": "is not host:port",
		"127.0.0.1:80@":    "the limit must be a time",
		"127.0.0.1:80@5":   `a time like 10s or 2m, not "5"`,
		"127.0.0.1:80@-1s": "the limit must be a time",
	} {
		_, err := parseTarget(arg, time.Minute)
		assert.ErrorContains(t, err, want, arg)
	}
}

func TestVerdict(t *testing.T) {
	up, down := outcome{}, outcome{err: errors.New("down")}
	for _, test := range []struct {
		outcomes []outcome
		all, any bool
	}{
		{[]outcome{up, up}, true, true},
		{[]outcome{up, down}, false, true},
		{[]outcome{down, down}, false, false},
	} {
		assert.Equal(t, test.all, verdict(slices.Clone(test.outcomes), false) == nil)
		assert.Equal(t, test.any, verdict(slices.Clone(test.outcomes), true) == nil)
	}
}
