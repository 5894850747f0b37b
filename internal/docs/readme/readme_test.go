package readme_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/docs/readme"
	"github.com/ambit-go/ambit/internal/docs/readme/byhand"
)

var errLoad = errors.New("no such file")

// loads has loadAll load four files, of which one fails and the others wait for ctx. It returns how many loads
// had not ended when loadAll returned, and ends when all have.
func loads(t *testing.T, loadAll func(context.Context, []string, func(context.Context, string) error) error) (left int64) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running atomic.Int64
	var all sync.WaitGroup
	all.Add(4)
	err := loadAll(ctx, []string{"a", "b", "c", "d"}, func(ctx context.Context, file string) error {
		running.Add(1)
		defer all.Done()
		defer running.Add(-1)
		for file == "d" {
			if running.Load() == 4 {
				return errLoad
			}
			runtime.Gosched()
		}
		<-ctx.Done()
		return ctx.Err()
	})
	require.ErrorIs(t, err, errLoad)
	left = running.Load()
	cancel()
	all.Wait()
	return left
}

// stuck returns how many goroutines of the function by hand there are.
func stuck() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "byhand.LoadAll.func1()")
}

// By hand the goroutines behind the first failure never end, whatever ctx says; with ambit all have ended
// when LoadAll returns.
func TestLoadAll(t *testing.T) {
	before := stuck()
	assert.EqualValues(t, 3, loads(t, byhand.LoadAll))
	for stuck()-before > 3 { // the one whose error was taken is about to end
		runtime.Gosched()
	}
	assert.Equal(t, 3, stuck()-before)
	assert.Zero(t, loads(t, readme.LoadAll))
}

// By hand a step that panics has passed, and one that is too slow runs on; with ambit neither is so.
func TestRunStep(t *testing.T) {
	type runStep = func(context.Context, func(context.Context) error, time.Duration) error
	panics := func(t *testing.T, run runStep) error {
		return run(t.Context(), func(context.Context) error { panic("index out of range") }, time.Second)
	}
	slow := func(t *testing.T, run runStep) (runsOn bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var gone atomic.Bool
		err := run(ctx, func(ctx context.Context) error {
			defer gone.Store(true)
			<-ctx.Done()
			return ctx.Err()
		}, time.Second)
		require.Error(t, err)
		return !gone.Load()
	}
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, panics(t, byhand.RunStep))
		var p *async.PanicError
		require.ErrorAs(t, panics(t, readme.RunStep), &p)
		assert.True(t, slow(t, byhand.RunStep))
		assert.False(t, slow(t, readme.RunStep))
	})
}
