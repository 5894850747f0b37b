package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAPlantedGoroutineIsFound shows that the check of TestMain can fail.
func TestAPlantedGoroutineIsFound(t *testing.T) {
	stop := make(chan struct{})
	ignore := goleak.IgnoreCurrent()
	go func() { <-stop }()
	if goleak.Find(ignore) == nil {
		t.Error("a leaked goroutine was not found")
	}
	close(stop)
	for goleak.Find(ignore) != nil { // it looks for half a second, and the goroutine may take longer to end
	}
}

// collected reports whether ok comes true while the collector runs again and again. Who waits for a collection is
// told on another goroutine, so it has a minute.
func collected(ok func() bool) bool {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if runtime.GC(); ok() {
			return true
		}
	}
	return ok()
}

// goroutines returns how many goroutines there are. If that is more than most
// it looks again for a while: when the garbage collector takes the stacks of
// goroutines that have ended, runtime.NumGoroutine counts these, too.
func goroutines(most int) int {
	n := runtime.NumGoroutine()
	for range 100_000 {
		if n <= most {
			break
		}
		runtime.Gosched()
		n = min(n, runtime.NumGoroutine())
	}
	return n
}

// raceFactor divides the counts of tests that are about amounts. The race
// detector makes everything ten times slower and needs more memory, so that
// under it they do a fiftieth. `make test` also runs them without it.
var raceFactor = map[bool]int{false: 1, true: 50}[underRace()]

// underRace says whether the race detector was built into this test.
func underRace() bool {
	build, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// fewer returns n, or under the race detector so many less, but at least least.
func fewer(n, least int) int { return min(n, max(n/raceFactor, least)) }

// awaitError is a handler's own error.
type awaitError struct{ code int }

func (e *awaitError) Error() string { return fmt.Sprint("own error ", e.code) }

// stubborn returns a handler that takes d whatever its context says.
func stubborn[T any](d time.Duration, value T, err error) func(context.Context) (T, error) {
	return func(context.Context) (T, error) {
		time.Sleep(d)
		return value, err
	}
}

// obedient returns a handler that waits to be told to stop and then takes d,
// and at least a moment: an Await that expires must not find it settled.
func obedient[T any](d time.Duration, value T, err error) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		untilStopped(ctx)
		time.Sleep(d)
		return value, err
	}
}

// untilStopped waits until ctx is done and everybody else in the bubble waits.
func untilStopped(ctx context.Context) {
	<-ctx.Done()
	time.Sleep(time.Nanosecond)
}

// tookAbout fails t unless want has passed since start, and a little.
func tookAbout(t *testing.T, want time.Duration, start time.Time) {
	t.Helper()
	took := time.Since(start)
	require.GreaterOrEqual(t, took, want)
	require.LessOrEqual(t, took, want+time.Microsecond)
}

// panicFrom returns what f panics with, nil if it does not.
func panicFrom(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

// rootContext returns a context without a scope, with a root of its own.
func rootContext(t *testing.T) context.Context {
	t.Helper()
	ctx, check := asynctest.Root(t.Context())
	t.Cleanup(func() { require.NoError(t, check()) })
	return ctx
}

// awaitInRootAndScope runs f with the context of a test's root and with that
// of a scope.
func awaitInRootAndScope(t *testing.T, f func(t *testing.T, ctx context.Context)) {
	t.Run("root", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, rootContext(t)) })
	})
	t.Run("scope", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
				f(t, ctx)
				return nil
			}))
		})
	})
}

// inBubble runs f in a synctest bubble with a root of its own.
func inBubble(t *testing.T, f func(t *testing.T, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, asynctest.Context(t)) })
}

var errPlanted = errors.New("planted")

func plantedPanic() { panic(errPlanted) }

// everythingIn returns err with all that it tells of, also what went wrong beside a
// panic, which errors.Is and errors.As do not reach.
func everythingIn(err error) error {
	all := []error{err}
	for i := 0; i < len(all) && i < 1000; i++ {
		switch e := all[i].(type) {
		case *async.PanicError:
			all = append(append(all, e.Also...), e.Unwrap())
		case interface{ Unwrap() error }:
			all = append(all, e.Unwrap())
		case interface{ Unwrap() []error }:
			all = append(all, e.Unwrap()...)
		}
	}
	return errors.Join(all...)
}

// panicOrError returns what f returned or panicked with.
func panicOrError(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = v.(error)
		}
	}()
	return f()
}

func awaits[T any](f *async.Future[T]) func(ctx context.Context) error {
	return func(ctx context.Context) error { _, err := f.Await(ctx, 0); return err }
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
