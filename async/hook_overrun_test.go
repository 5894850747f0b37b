package async_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/internal/bridge"
)

// TestAnExitHookThatTakesTooLongIsATimeoutError of that hook, whatever it
// returns then.
func TestAnExitHookThatTakesTooLongIsATimeoutError(t *testing.T) {
	for name, tc := range map[string]struct {
		hook func(ctx context.Context) error
		late bool
	}{
		"in time":                     {sleeps(time.Second / 2), false},
		"says nothing":                {sleeps(time.Minute), true},
		"obeys its ctx":               {func(ctx context.Context) error { <-ctx.Done(); return nil }, true},
		"returns why it stopped":      {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, true},
		"fails":                       {func(ctx context.Context) error { <-ctx.Done(); return errPlanted }, true},
		"panics":                      {func(ctx context.Context) error { <-ctx.Done(); panic(errPlanted) }, true},
		"what it has started obeys":   {func(ctx context.Context) error { async.Go(ctx, waitHook); return nil }, false},
		"stopped by something inside": {func(ctx context.Context) error { async.Go(ctx, failsHook); time.Sleep(time.Second / 2); return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.OnExit(ctx, func(ctx context.Context, _ error) error { return tc.hook(ctx) })
					return nil
				}, async.HookTimeout(time.Second), async.Name("scope"))
				var limit *async.TimeoutError
				require.Equal(t, tc.late, errors.As(err, &limit), "%v", err)
				if tc.late {
					require.Equal(t, "exit hook of scope", limit.Task)
					require.Equal(t, time.Second, limit.Limit)
				}
			})
		})
	}
}

func waitHook(ctx context.Context) error  { <-ctx.Done(); return nil }
func failsHook(ctx context.Context) error { return errPlanted }

// TestDetachAfterLetsGoOfAnExitHookThatTakesTooLong, after which the others run.
func TestDetachAfterLetsGoOfAnExitHookThatTakesTooLong(t *testing.T) {
	for name, tc := range map[string]struct {
		detach, want time.Duration
	}{
		"when its time is up": {2 * time.Second, 5 * time.Second},
		"when it is late":     {7 * time.Second, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, check := asynctest.Root(ctx)
				begin := time.Now()
				var others []time.Duration
				note := func(context.Context, error) error { others = append(others, time.Since(begin)); return nil }
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.OnExit(ctx, note)
					async.OnExit(ctx, func(context.Context, error) error { time.Sleep(time.Minute); return nil })
					async.OnExit(ctx, note)
					return errPlanted
				}, async.DetachAfter(tc.detach), async.Name("scope"))
				require.Equal(t, tc.want, time.Since(begin))
				var left *async.StragglerError
				require.ErrorAs(t, err, &left)
				require.Equal(t, "exit hook of scope", left.Left[0].Task)
				require.Contains(t, left.Left[0].Stack, "time.Sleep")
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, []time.Duration{0, time.Minute}, others)
				require.ErrorContains(t, check(), "exit hook of scope", "the root is told that it was late")
			})
		})
	}
}

// A plant is something of another package that takes time to end.
type plant struct {
	takes time.Duration
	how   bridge.Ending
	fails error
}

func (p *plant) ScopeEnds(how bridge.Ending, _ error) { p.how = how }
func (p *plant) Ended() bool                          { return false }
func (p *plant) Name() string                         { return "plant" }
func (p *plant) Join(context.Context) error           { growHere(p.takes); return p.fails }
func (p *plant) Left() []bridge.Left {
	return []bridge.Left{{Task: "leaf", Frame: "async_test.growHere("}, {Task: "flower"}}
}

//go:noinline
func growHere(d time.Duration) { time.Sleep(d) }

// TestWhatTakesTimeToEndIsJoined without a time limit, in turn with the exit
// hooks, and only DetachAfter lets a scope return before.
func TestWhatTakesTimeToEndIsJoined(t *testing.T) {
	run := func(ctx context.Context, p *plant, body error, opts ...async.ScopeOption) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			bridge.AtEnd(bridge.ScopeOf(ctx), p)
			return body
		}, append(opts, async.Name("scope"))...)
	}
	t.Run("joined", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			begin := time.Now()
			p := &plant{takes: time.Hour, fails: errors.New("withered")}
			require.Equal(t, p.fails, run(ctx, p, nil))
			require.Equal(t, time.Hour, time.Since(begin))
			require.Equal(t, bridge.Well, p.how)
		})
	})
	t.Run("let go", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			begin := time.Now()
			err := run(ctx, &plant{takes: time.Hour}, errPlanted, async.DetachAfter(time.Second))
			require.Equal(t, time.Second, time.Since(begin))
			require.ErrorIs(t, err, errPlanted)
			var left *async.StragglerError
			require.ErrorAs(t, err, &left)
			var names []string
			for _, s := range left.Left {
				names = append(names, s.Task)
			}
			require.Equal(t, []string{"end of plant of scope", "leaf", "flower"}, names)
			require.Contains(t, left.Left[1].Stack, "growHere")
			require.Equal(t, []string{"scope"}, asynctest.Live(ctx))
			time.Sleep(time.Hour)
			require.Empty(t, asynctest.Live(ctx))
		})
	})
	t.Run("Shutdown does not wait for it as for a hook", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			ctx, _ = asynctest.Root(ctx)
			_ = run(ctx, &plant{takes: time.Hour}, errPlanted, async.DetachAfter(time.Second))
			begin := time.Now()
			patient, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			require.ErrorContains(t, async.Shutdown(patient), "plant")
			require.Less(t, time.Since(begin), time.Minute)
			time.Sleep(time.Hour)
		})
	})
}
