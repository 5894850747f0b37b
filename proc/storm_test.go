//go:build unix

package proc

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
)

// Commands of many kinds, told to stop at any time by several that do not know of
// each other, with readers and writers that fail: nothing of them is left.
func TestStopsAtAnyTimeLeaveNothing(t *testing.T) {
	scripts := []string{
		"exit 0", "exit 3", "sleep 600", "sleep 600 & wait", "trap '' TERM; sleep 600 & wait",
		"sleep 600 & exit 0", "while :; do echo line; done", "cat >/dev/null", "cat & exit 0", "kill -STOP $$",
		"kill -9 $$", "exec >&- 2>&- <&-; sleep 600",
	}
	errStop := errors.New("stop")
	ctx := asynctest.Context(t)
	goroutines := runtime.NumGoroutine()
	files, children := mine(t)
	one := func(i int) {
		stopped, cancel := context.WithCancelCause(ctx)
		hurried, hurry := context.WithCancel(context.Background())
		defer hurry()
		ch := make(chan struct{})
		var pid atomic.Int64
		var writes atomic.Int32
		c := Command{
			Args: []string{"sh", "-c", scripts[i%len(scripts)]}, Hurry: hurried,
			Grace: 30 * time.Millisecond, Linger: 20 * time.Millisecond, GiveUp: hang, Mixed: rand.N(2) == 0,
			Started: func(p int) { pid.Store(int64(p)) },
			Stdout: writerFunc(func(p []byte) (int, error) {
				if writes.Add(1) > 50 {
					return 0, io.ErrClosedPipe
				}
				return len(p), nil
			}),
		}
		switch rand.N(4) {
		case 0:
			c.Stdin = strings.NewReader(strings.Repeat("input\n", 100_000))
		case 1:
			c.Stdin = readerFunc(func([]byte) (int, error) { return 0, errStop })
		case 2:
			c.Stderr = writerFunc(func([]byte) (int, error) { panic("writer") })
		}
		calls := []func(){func() { cancel(errStop) }, hurry, func() { close(ch) }}
		for _, call := range calls {
			timer := time.AfterFunc(rand.N(60*time.Millisecond), call)
			defer timer.Stop()
		}
		result, err := Run(stopped, c, async.StopOn(ch, errStop))
		cancel(nil)
		if err == nil {
			assert.Zero(t, result.Code)
			assert.NoError(t, result.Cause)
		}
		if pid := int(pid.Load()); pid != 0 {
			assert.Equal(t, pid, result.Pid)
			assert.False(t, result.Survived)
			assert.Empty(t, clitest.InGroup(t, pid), "%s: %v", scripts[i%len(scripts)], err)
		}
	}
	n := 20 * len(scripts)
	if testing.Short() {
		n = 2 * len(scripts)
	}
	require.NoError(t, async.ForEach(ctx, func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}, func(_ context.Context, i int) error { one(i); return nil }, async.Limit(8)))
	clitest.Eventually(t, "the end of the goroutines", func() bool { return runtime.NumGoroutine() <= goroutines })
	filesAfter, childrenAfter := mine(t)
	assert.Len(t, filesAfter, len(files), "before: %v\nafter: %v", files, filesAfter)
	assert.Equal(t, children, childrenAfter, "children")
	assert.Empty(t, asynctest.Live(context.Background()), "tasks in the root")
}
