package async_test

import (
	"context"
	"io"
	"iter"
	"net/http"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func oneAndTwo(<-chan struct{}) iter.Seq[int] { return slices.Values([]int{1, 2}) }

// secondPanics returns what is done with one and two: two closes second, and
// panics when it is told to stop; one returns once two has begun.
func secondPanics(second chan struct{}) func(ctx context.Context, i int) (int, error) {
	return func(ctx context.Context, i int) (int, error) {
		if i == 1 {
			<-second
			return 1, nil
		}
		close(second)
		<-ctx.Done()
		panic(io.EOF)
	}
}

// TestALoopsPanicGoesOnAsItWas, as that of a body, whatever its items do: one
// that panics when it is told to stop comes second, and is told to the root.
func TestALoopsPanicGoesOnAsItWas(t *testing.T) {
	for name, tc := range map[string]struct {
		items func(second <-chan struct{}) iter.Seq[int]
		left  func()
		gets  any
	}{
		"by its body": {oneAndTwo, func() { panic(http.ErrAbortHandler) }, http.ErrAbortHandler},
		"by its sequence": {func(second <-chan struct{}) iter.Seq[int] {
			return func(yield func(int) bool) {
				_ = yield(1) && yield(2)
				<-second
				panic(http.ErrAbortHandler)
			}
		}, func() {}, http.ErrAbortHandler},
		"by break": {oneAndTwo, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root, check := asynctest.Root(context.Background())
			second := make(chan struct{})
			value := recovered(func() {
				for range async.Map(root, tc.items(second), secondPanics(second)) {
					if tc.left == nil {
						break
					}
					tc.left()
				}
			})
			if lost := check(); tc.gets != nil {
				require.Equal(t, tc.gets, value)
				require.ErrorIs(t, lost, io.EOF)
			} else {
				require.ErrorIs(t, value.(error), io.EOF)
				require.NoError(t, lost)
			}
		})
	}
}

// TestAPanicErrorThatLeavesALoopGoesOnAsItWas: what was beside it the root is told.
func TestAPanicErrorThatLeavesALoopGoesOnAsItWas(t *testing.T) {
	ctx, check := asynctest.Root(t.Context())
	_, first := async.Start(ctx, func(context.Context) error { panic(errPlanted) }).Await(ctx, 0)
	value := recovered(func() {
		for range async.Map(ctx, oneAndTwo(nil), secondPanics(make(chan struct{}))) {
			panic(first)
		}
	})
	require.Equal(t, any(first), value)
	require.ErrorIs(t, check(), io.EOF)
}

// TestALoopThatIsLeftByGoexitRaisesWhatPanicked, as a Scope does.
func TestALoopThatIsLeftByGoexitRaisesWhatPanicked(t *testing.T) {
	ctx := asynctest.Context(t)
	got := make(chan any)
	go func() {
		defer func() { got <- recover() }()
		for range async.Map(ctx, oneAndTwo(nil), secondPanics(make(chan struct{}))) {
			runtime.Goexit()
		}
	}()
	require.ErrorIs(t, (<-got).(error), io.EOF)
}
