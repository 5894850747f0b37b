package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"waitports": main})
}

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: clitest.Commands[*testscript.TestScript](), Setup: clitest.Setup[*testscript.Env]})
}

var errRefused = errors.New("connection refused")

// opens is a service that refuses until d has passed.
func opens(d time.Duration) probe {
	at := time.Now().Add(d)
	return func(context.Context) (string, bool, error) {
		if time.Now().Before(at) {
			return "", false, async.Again(errRefused)
		}
		return "", true, nil
	}
}

// drops is a service that answers nothing.
func drops(ctx context.Context) (string, bool, error) {
	<-ctx.Done()
	return "", false, async.Again(ctx.Err())
}

// waited runs a wait in a bubble, where times are exact, and returns what became of each
// target and how long that took.
func waited(t *testing.T, w waiter, stop func(cancel func()), targets func() []target) (outcomes []outcome, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(asynctest.Context(t))
		defer cancel()
		if stop != nil {
			stop(cancel)
		}
		w.interval, w.tell = time.Second, func(string, ...any) {}
		w.steady = max(w.steady, 1)
		begin := time.Now()
		outcomes = w.wait(ctx, targets())
		took = time.Since(begin)
	})
	return outcomes, took
}

// words are the names and outcomes.
func words(outcomes []outcome) (words []string) {
	for _, o := range outcomes {
		what, _ := o.explain()
		words = append(words, o.name+" "+what)
	}
	return words
}

func TestEachTargetHasItsLimitAndItsOutcomeInOrder(t *testing.T) {
	asked := 0
	outcomes, took := waited(t, waiter{}, nil, func() []target {
		return []target{
			{"never", "a:1", time.Minute, opens(24 * time.Hour)},
			{"late", "a:2", 30 * time.Second, opens(10 * time.Second)},
			{"short", "a:3", time.Second, opens(10 * time.Second)},
			{"gone", "a:4", time.Minute, func(context.Context) (string, bool, error) { return "", false, errors.New("404") }},
			{"up", "a:5", time.Minute, opens(0)},
			{"pod", "a:6", time.Minute, func(context.Context) (string, bool, error) {
				if phase := `"Pending"`; asked == 0 {
					asked++
					return phase, false, async.Again(nil)
				}
				return "", false, async.Again(errors.New("503"))
			}},
		}
	})
	assert.Equal(t, []string{"never down", "late up", "short down", "gone failed", "up up", "pod down"}, words(outcomes))
	assert.Equal(t, time.Minute, took)
	assert.Equal(t, time.Second, outcomes[2].took)
	assert.Zero(t, outcomes[4].took)
	_, why := outcomes[0].explain()
	assert.Equal(t, "limit 1m0s; last error: connection refused", why)
	_, why = outcomes[3].explain()
	assert.Equal(t, "404", why)
	_, why = outcomes[5].explain()
	assert.Equal(t, `limit 1m0s; last phase: "Pending"; last error: 503`, why)
	assert.EqualError(t, verdict(outcomes, false), "2 of 6 up")
	assert.Equal(t, 1, verdict(outcomes, false).(*failure).status)
	assert.Equal(t, 124, verdict(outcomes[:3], false).(*failure).status)
	assert.NoError(t, verdict(outcomes, true))
}

// A host that drops what it does not want is asked anew, and that the limit has ended the
// last attempt is not why it is down.
func TestHostThatDropsIsAskedAgain(t *testing.T) {
	outcomes, _ := waited(t, waiter{}, nil, func() []target {
		return []target{{"dropping", "a:1", 12 * time.Second, drops}}
	})
	assert.Equal(t, 3, outcomes[0].attempts)
	assert.Equal(t, 12*time.Second, outcomes[0].took)
}

func TestFlappingServiceIsUpOnlyWhenItIsSteady(t *testing.T) {
	pattern, n := "--+-++-+++", -1
	outcomes, _ := waited(t, waiter{steady: 3}, nil, func() []target {
		return []target{{"flapping", "a:1", time.Minute, func(context.Context) (string, bool, error) {
			if n++; pattern[n] == '+' {
				return "", true, nil
			}
			return "", false, async.Again(errRefused)
		}}}
	})
	assert.Equal(t, []string{"flapping up"}, words(outcomes))
	assert.Equal(t, len(pattern), outcomes[0].attempts)
}

// The others are told, and waited for until they have noticed, however long that takes.
func TestAnyEndsWithTheFirstAndJoinsTheRest(t *testing.T) {
	var noticed atomic.Bool
	outcomes, took := waited(t, waiter{any: true}, nil, func() []target {
		return []target{
			{"never", "a:1", 24 * time.Hour, opens(24 * time.Hour)},
			{"stubborn", "a:2", 24 * time.Hour, func(ctx context.Context) (string, bool, error) {
				for ctx.Err() == nil {
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(time.Second)
				noticed.Store(true)
				return "", false, ctx.Err()
			}},
			{"up", "a:3", time.Minute, opens(50 * time.Millisecond)},
		}
	})
	assert.Equal(t, []string{"never unneeded", "stubborn unneeded", "up up"}, words(outcomes))
	assert.True(t, noticed.Load())
	assert.Equal(t, 1100*time.Millisecond, took)
	outcomes, _ = waited(t, waiter{any: true}, nil, func() []target {
		return []target{{"a", "a:1", time.Second, opens(time.Hour)}, {"b", "a:2", time.Minute, opens(time.Hour)}}
	})
	assert.Equal(t, []string{"a down", "b down"}, words(outcomes))
	assert.EqualError(t, verdict(outcomes, true), "0 of 2 up")
}

func TestCancelledWaitTellsAtOnceWhatItKnows(t *testing.T) {
	for _, any := range []bool{false, true} {
		for _, after := range []time.Duration{0, 90 * time.Second} {
			outcomes, took := waited(t, waiter{any: any}, func(cancel func()) {
				if after == 0 {
					cancel()
				} else {
					time.AfterFunc(after, cancel)
				}
			}, func() []target {
				hour := func(context.Context) (string, bool, error) {
					return `"Pending"`, false, async.AgainAfter(time.Hour, nil)
				}
				return []target{{"down", "a:1", time.Minute, opens(time.Hour)}, {"pod", "a:2", time.Hour, hour}, {"drops", "a:3", time.Hour, drops}}
			})
			assert.Equal(t, after, took)
			if after == 0 {
				assert.Equal(t, []string{"down stopped", "pod stopped", "drops stopped"}, words(outcomes))
				continue
			}
			assert.Equal(t, []string{"down down", "pod stopped", "drops stopped"}, words(outcomes))
			_, why := outcomes[1].explain()
			assert.Equal(t, `not asked any longer; last phase: "Pending"`, why)
		}
	}
}

func TestTargetsAreRead(t *testing.T) {
	for arg, want := range map[string]target{
		"127.0.0.1:80":                {name: "127.0.0.1:80", address: "127.0.0.1:80", limit: time.Minute},
		"=127.0.0.1:http":             {name: "127.0.0.1:http", address: "127.0.0.1:http", limit: time.Minute},
		"db=[::1]:5432@2m":            {name: "db", address: "[::1]:5432", limit: 2 * time.Minute},
		"web=https://a/pods/web@5s":   {name: "web", address: "https://a/pods/web", limit: 5 * time.Second},
		"https://me@a:1/pods/web?x=y": {name: "https://me@a:1/pods/web?x=y", address: "https://me@a:1/pods/web?x=y", limit: time.Minute},
	} {
		got, err := parseTargets([]string{arg}, time.Minute)
		require.NoError(t, err, arg)
		got[0].probe = nil
		assert.Equal(t, want, got[0])
	}
}

// Some characters take two cells of a terminal. The columns are straight all the same.
func TestTableIsAlignedForWideCharacters(t *testing.T) {
	lines := strings.Split(report([]outcome{
		{target: target{name: "数据库", address: "127.0.0.1:5432"}},
		{target: target{name: "é", address: "127.0.0.1:80", limit: time.Second}, err: context.Canceled},
	}), "\n")
	for _, line := range lines[1:3] {
		before, _, _ := strings.Cut(line, "127")
		assert.Equal(t, strings.Index(lines[0], "ADDRESS"), runewidth.StringWidth(before), line)
	}
	assert.Equal(t, "数据库  127.0.0.1:5432  up       0s     0", lines[1])
}
