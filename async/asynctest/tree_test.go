package asynctest_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// inChild is set in the process in which a test of this file is to fail.
const inChild = "ASYNCTEST_CHILD"

// failed runs the test again, alone, in a process of its own, where it is to fail, and returns what
// that has written.
func failed(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inChild+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "it passes: %s", out)
	return string(out)
}

func isChild() bool { return os.Getenv(inChild) != "" }

// waits starts two tasks, one of which waits for the other, and that for ctx.
func waits(ctx context.Context) {
	target := async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, async.Name("target"))
	async.Go(ctx, func(ctx context.Context) error { _, _ = target.Wait(ctx); return nil }, async.Name("waits"))
}

func TestATestThatFailsShowsTheTree(t *testing.T) {
	if isChild() {
		synctest.Test(t, func(t *testing.T) {
			waits(asynctest.Context(t))
			synctest.Wait()
			t.FailNow()
		})
		return
	}
	out := failed(t)
	require.Regexp(t, "waits +go +awaits #[0-9.]+ target", out)
	require.NotContains(t, out, "told to stop", "the tree is that before the end")
}

func TestATestThatPassesShowsNothing(t *testing.T) {
	if isChild() {
		waits(asynctest.Context(t))
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inChild+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err)
	require.NotContains(t, string(out), "async tree of")
}

// An ending is a test whose time is up at a time of its own.
type ending struct {
	*testing.T
	at time.Time
}

func (e ending) Deadline() (time.Time, bool) { return e.at, true }

// hangs blocks for ever in a test whose time is up soon, and shows its tree a second before that. It begins again, with
// more time, if the tasks of the tree were not there by then.
func hangs(t *testing.T) {
	for soon := 100 * time.Millisecond; soon < 15*time.Second; soon *= 2 {
		shown := time.Now().Add(soon)
		ctx := asynctest.Context(ending{t, shown.Add(time.Second)})
		waits(ctx)
		for text := ""; !awaited.MatchString(text); text = dumped(t, ctx) {
			runtime.Gosched()
		}
		if time.Now().Before(shown) {
			<-ctx.Done()
		}
	}
	t.Fatal("the machine is too slow")
}

var awaited = regexp.MustCompile(`awaits #[0-9.]+ target`)

func dumped(t *testing.T, ctx context.Context) string {
	var b strings.Builder
	require.NoError(t, async.Dump(&b, async.Of(ctx)))
	return b.String()
}

func TestATestThatHangsShowsTheTree(t *testing.T) {
	if isChild() {
		_, ok := t.Deadline()
		require.True(t, ok, "it is that of -timeout")
		hangs(t)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), inChild+"=1")
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var out strings.Builder
	for lines := bufio.NewScanner(said); !awaited.MatchString(out.String()) && lines.Scan(); {
		out.WriteString(lines.Text() + "\n")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	require.Contains(t, out.String(), "TestATestThatHangsShowsTheTree goes on:\n")
	require.Regexp(t, awaited, out.String())
}

func TestABubbleThatBlocksShowsTheTree(t *testing.T) {
	if isChild() {
		asynctest.Run(t, func(t *testing.T, ctx context.Context) {
			never := make(chan struct{})
			async.Go(ctx, func(context.Context) error { <-never; return nil }, async.Name("blocked"))
			<-never
		})
		return
	}
	out := failed(t)
	require.Contains(t, out, "all of TestABubbleThatBlocksShowsTheTree blocks:\n")
	require.Contains(t, out, "blocked")
	require.Contains(t, out, "deadlock:")
}

func TestRunIsABubbleWithAScope(t *testing.T) {
	asynctest.Run(t, func(t *testing.T, ctx context.Context) {
		began := time.Now()
		async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) })
		require.NoError(t, async.Sleep(ctx, 2*time.Hour))
		require.Equal(t, 2*time.Hour, time.Since(began))
	})
}

// told is a test that keeps what it was failed with.
type told struct {
	testing.TB
	text string
}

func (r *told) Helper()                           {}
func (r *told) Errorf(format string, args ...any) { r.text += fmt.Sprintf(format, args...) }
func (r *told) Fatalf(format string, args ...any) { r.text += fmt.Sprintf(format, args...) }

func TestEventually(t *testing.T) {
	inAndOutside(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		calls := 0
		r := &told{TB: t}
		asynctest.Eventually(r, ctx, time.Minute, func() bool { calls++; return calls == 5 })
		require.Empty(t, r.text)
		require.Equal(t, 5, calls)
	})
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		waits(ctx)
		r := &told{TB: t}
		began := time.Now()
		asynctest.Eventually(r, ctx, time.Minute, func() bool { return false })
		require.Contains(t, r.text, "has not come true in 1m0s")
		require.Contains(t, r.text, "awaits")
		require.Equal(t, time.Minute, time.Since(began))

		ready := false
		async.Go(ctx, func(ctx context.Context) error { ready = true; return nil })
		asynctest.Eventually(t, ctx, 0, func() bool { return ready }) // it looks once, at rest
	})
}

func TestNoStragglers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		r := &told{TB: t}
		waits(ctx)
		asynctest.NoStragglers(r, ctx)
		require.Empty(t, r.text, "nobody has told these to stop")

		end := make(chan struct{})
		slow := async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Second); return nil })
		slow.Cancel(nil)
		asynctest.NoStragglers(r, ctx)
		require.Empty(t, r.text, "it is given time")

		stubborn := async.Start(ctx, func(context.Context) error { <-end; return nil }, async.Name("stubborn"))
		stubborn.Cancel(nil)
		asynctest.NoStragglers(r, ctx)
		require.Contains(t, r.text, "STRAGGLER")
		require.Contains(t, r.text, "stubborn")
		close(end)
		r.text = ""
		end = make(chan struct{})
		async.Detach(ctx, "detached", func(context.Context) error { <-end; return nil })
		asynctest.NoStragglers(r, ctx)
		require.Contains(t, r.text, "detached")
		close(end)
		synctest.Wait()
		r.text = ""
		asynctest.NoStragglers(r, ctx)
		require.Empty(t, r.text)
	})
}
