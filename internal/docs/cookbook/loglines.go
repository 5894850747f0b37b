package cookbook

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
)

// LogLines returns a batch to which the lines of a log are added. They are sent
// in order: when there is 1 MiB of them, when the first has waited for 1 s, and
// when the scope of ctx ends, also if it is cancelled. A line that could not be
// sent in five attempts fails the scope.
func LogLines(ctx context.Context, send func(ctx context.Context, lines []string) error) *batch.Batch[string] {
	return batch.New(ctx, func(ctx context.Context, lines []string) error {
		_, err := async.Retry(ctx, async.Backoff(100*time.Millisecond, 2*time.Second),
			func(ctx context.Context) (struct{}, error) { return struct{}{}, send(ctx, lines) }, async.Attempts(5))
		return err
	},
		batch.Size(1<<20, func(line string) int { return len(line) }),
		batch.Age(time.Second),
		batch.Capacity(100_000))
}
