package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
)

// Lines are written when there are three of them, when one has waited for a
// minute, and at the end.
func ExampleNew() {
	write := func(_ context.Context, lines []string) error {
		fmt.Println("write", lines)
		return nil
	}
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		b := batch.New(ctx, write, batch.Items(3), batch.Age(time.Minute))
		for _, line := range []string{"one", "two", "three"} {
			if err := b.Add(ctx, line); err != nil {
				return err
			}
		}
		if err := b.Flush(ctx); err != nil {
			return err
		}
		return b.Add(ctx, "four")
	})
	fmt.Println(err)
	// Output:
	// write [one two three]
	// write [four]
	// <nil>
}

// A receiver that takes no more than two at once is served in pieces by flush. It
// may be down: flush tries again, not the batch.
func ExampleBatch_Add() {
	attempt := 0
	send := func(_ context.Context, piece []int) error {
		if attempt++; attempt == 2 {
			return errors.New("not now")
		}
		fmt.Println("send", piece)
		return nil
	}
	flush := func(ctx context.Context, rows []int) error {
		for len(rows) > 0 {
			piece := rows[:min(2, len(rows))]
			again := func(ctx context.Context) (struct{}, error) { return struct{}{}, send(ctx, piece) }
			if _, err := async.Retry(ctx, async.Backoff(time.Millisecond, time.Second), again, async.Attempts(5)); err != nil {
				return err
			}
			rows = rows[len(piece):]
		}
		return nil
	}
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		b := batch.New(ctx, flush, batch.Age(time.Minute))
		return b.Add(ctx, 1, 2, 3, 4, 5)
	})
	fmt.Println(err)
	// Output:
	// send [1 2]
	// send [3 4]
	// send [5]
	// <nil>
}

// Many requests each want their row to be on disk before they answer. Rows that come while
// a transaction is on its way share the next one.
func ExampleBatch_Do() {
	written := 0
	write := func(_ context.Context, rows []string) error {
		written += len(rows) // BEGIN; INSERT ...; COMMIT
		return nil
	}
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		commits := batch.New(ctx, write)
		return async.ForEach(ctx, slices.Values([]string{"a", "b", "c"}), func(ctx context.Context, row string) error {
			err := commits.Do(ctx, row)
			if errors.Is(err, batch.ErrUnderWay) {
				return fmt.Errorf("it is not known whether %s is stored: %w", row, err)
			}
			return err // nil: the row is stored
		})
	})
	fmt.Println(written, err)
	// Output: 3 <nil>
}

// A store answers each row by itself: one that is refused does not keep the others out.
func ExampleNewAnswering() {
	table := map[string]bool{"a": true}
	insert := func(_ context.Context, keys []string) []error {
		answers := make([]error, len(keys))
		for i, key := range keys {
			if table[key] {
				answers[i] = fmt.Errorf("duplicate key %q", key)
			}
			table[key] = true
		}
		return answers
	}
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		rows := batch.NewAnswering(ctx, insert)
		fmt.Println(rows.Do(ctx, "a"))
		fmt.Println(rows.Do(ctx, "b"))
		return nil
	})
	fmt.Println(err)
	// Output:
	// duplicate key "a"
	// <nil>
	// <nil>
}

// Items that the last flush could not deliver are not lost silently.
func ExampleLostError() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		b := batch.New(ctx, func(context.Context, []string) error { return errors.New("disk full") })
		return b.Add(ctx, "a", "b")
	})
	if lost := new(batch.LostError[string]); errors.As(err, &lost) {
		fmt.Println(lost.Items, lost.Err)
	}
	// Output: [a b] disk full
}

// Before a file is rotated all that was added so far is to be in it.
func ExampleBatch_Flush() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		b := batch.New(ctx, func(_ context.Context, lines []string) error {
			fmt.Println("write", lines)
			return nil
		})
		if err := b.Add(ctx, "one", "two"); err != nil {
			return err
		}
		if err := b.Flush(ctx); err != nil {
			return err
		}
		fmt.Println("rotate", b.Len())
		return nil
	})
	fmt.Println(err)
	// Output:
	// write [one two]
	// rotate 0
	// <nil>
}

// A gauge of how much waits to be written.
func ExampleBatch_Len() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		b := batch.New(ctx, func(context.Context, []string) error { return nil }, batch.Age(time.Hour))
		_ = b.Add(ctx, "one", "two")
		fmt.Println(b.Len())
		return nil
	})
	// Output: 2
}

// At most 100 lines, or 1 MiB, or what has waited for a second; and at most 10,000 are kept while
// the disk does not keep up: then Add waits.
func ExampleSize() {
	write := func(context.Context, []string) error { return nil }
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		b := batch.New(ctx, write,
			batch.Items(100), batch.Size(1<<20, func(line string) int { return len(line) }), batch.Age(time.Second), batch.Capacity(10_000))
		return b.Add(ctx, "a line")
	})
	fmt.Println(err)
	// Output: <nil>
}

// Two lines that wait are written a second after the first has come, however many follow.
func ExampleAge() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		written := make(chan []string)
		b := batch.New(ctx, func(_ context.Context, lines []string) error {
			written <- lines
			return nil
		}, batch.Age(10*time.Millisecond))
		_ = b.Add(ctx, "one", "two")
		fmt.Println(<-written)
		return nil
	})
	// Output: [one two]
}

// Three rows are a statement.
func ExampleItems() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		b := batch.New(ctx, func(_ context.Context, rows []int) error {
			fmt.Println(rows)
			return nil
		}, batch.Items(3))
		if err := b.Add(ctx, 1, 2, 3); err != nil {
			return err
		}
		return b.Flush(ctx)
	})
	// Output: [1 2 3]
}

// More than there is room for at any time is refused at once; with less Add waits.
func ExampleCapacity() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		b := batch.New(ctx, func(context.Context, []int) error { return nil }, batch.Capacity(2))
		fmt.Println(errors.Is(b.Add(ctx, 1, 2, 3), batch.ErrTooMany))
		return nil
	})
	// Output: true
}
