package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
)

// A journal writes lines to a disk, many at once.
type journal struct {
	disk   strings.Builder // flush alone writes to it, one call at a time
	broken bool
	lines  *batch.Batch[string]
}

// openJournal returns a journal that is closed with the scope of ctx.
func openJournal(ctx context.Context) *journal {
	j := new(journal)
	async.OnExit(ctx, func(context.Context, error) error { // before the batch is made, so it is called after the last flush
		fmt.Println("closed")
		return nil
	})
	j.lines = batch.New(ctx, j.write, batch.Items(100), batch.Age(time.Second), batch.Capacity(10_000))
	return j
}

func (j *journal) write(_ context.Context, lines []string) error {
	if j.broken {
		return errors.New("disk full")
	}
	for _, line := range lines {
		j.disk.WriteString(line + "\n")
	}
	return nil
}

// accept returns when the order is on the disk: then it may be answered.
func (j *journal) accept(ctx context.Context, order string) error { return j.lines.Do(ctx, order) }

// note returns at once. The line is written within a second, or the scope fails.
func (j *journal) note(ctx context.Context, text string) error { return j.lines.Add(ctx, text) }

// Orders are accepted by many goroutines at once, and share the writes; notes are written at the end, at the latest.
func Example() {
	var j *journal
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		j = openJournal(ctx)
		for i := range 5 {
			async.Go(ctx, func(ctx context.Context) error { return j.accept(ctx, fmt.Sprint("order ", i)) })
		}
		return nil
	})
	lines := strings.Split(strings.TrimSpace(j.disk.String()), "\n")
	slices.Sort(lines)
	fmt.Println(lines, err)

	err = async.Scope(context.Background(), func(ctx context.Context) error {
		j = openJournal(ctx)
		j.broken = true
		return j.note(ctx, "started")
	})
	var lost *batch.LostError[string]
	fmt.Println(errors.As(err, &lost), lost.Items)
	// Output:
	// closed
	// [order 0 order 1 order 2 order 3 order 4] <nil>
	// closed
	// true [started]
}
