package async_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/async/record"
)

// For LOOK_FOR, such as 1m, a thousand tasks at a time start, end, await, fail, panic, are cancelled, and are recorded, and four look at
// them all the while; a moment, if it is not set. With 1m and -race a hundred thousand come and go several times over.
func TestLooksForAWhile(t *testing.T) {
	long := 200 * time.Millisecond
	if text := os.Getenv("LOOK_FOR"); text != "" {
		d, err := time.ParseDuration(text)
		require.NoError(t, err)
		long = d
	}
	ctx := asynctest.Context(t)
	rec := record.New(record.Callers(), record.Bytes(64<<10))
	stop := lookers(t, ctx)
	const inRound = 1000
	var ended atomic.Int64
	rounds := 0
	for end := time.Now().Add(long); rounds == 0 || time.Now().Before(end); rounds++ {
		err := panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				crowd(ctx, rounds, inRound, &ended)
				return nil
			}, async.Limit(1+rounds%70), async.Name("crowd"), async.Observe(rec))
		})
		require.Error(t, err, "some have panicked or failed")
		if rounds%10 == 0 {
			for _, l := range rec.Recording(async.Snapshot(async.Of(ctx))).Live {
				require.NotEmpty(t, l.Task)
			}
		}
	}
	looks := stop()
	require.Positive(t, looks)
	require.Equal(t, 1, async.Snapshot(async.Of(ctx)).Live, "nothing is left but the group of the test")
	all := rec.Recording(nil)
	require.NotEmpty(t, all.Events)
	require.NotEmpty(t, all.Failures)
	for _, w := range all.Waits {
		require.NotZero(t, w.ID)
	}
	t.Logf("%d tasks in %d rounds, %d looks", rounds*inRound, rounds, looks)
}
