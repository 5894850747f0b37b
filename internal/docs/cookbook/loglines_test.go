package cookbook

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/batch"
	"github.com/ambit-go/ambit/internal/docs/cookbook/byhand"
)

// A receiver keeps the batches that it was sent, and when the first one came.
type receiver struct {
	start   time.Time
	first   time.Duration
	batches [][]string
}

func (r *receiver) send(_ context.Context, lines []string) error {
	if len(r.batches) == 0 {
		r.first = time.Since(r.start)
	}
	r.batches = append(r.batches, lines)
	return nil
}

func TestALineWaitsForASecondAlsoIfOthersKeepComing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{start: time.Now()}
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			lines := LogLines(ctx, r.send)
			for range 100 {
				require.NoError(t, lines.Add(ctx, "line"))
				time.Sleep(300 * time.Millisecond)
			}
			return nil
		}))
		require.Equal(t, time.Second, r.first)

		hand := &receiver{start: time.Now()}
		lines := make(chan string)
		go func() {
			defer close(lines)
			for range 100 {
				lines <- "line"
				time.Sleep(300 * time.Millisecond)
			}
		}()
		byhand.SendLog(t.Context(), lines, hand.send)
		require.Equal(t, 30*time.Second, hand.first, "the fault that the page lists")
	})
}

func TestALogIsSentWhenThereIsMuchOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no second passes
		r := &receiver{}
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			lines := LogLines(ctx, r.send)
			for range 4 {
				require.NoError(t, lines.Add(ctx, strings.Repeat("x", 1<<19)))
			}
			return nil
		}))
		require.NotEmpty(t, r.batches)
		require.GreaterOrEqual(t, len(r.batches[0]), 2)
	})
}

func TestTheLastLinesAreSentAlsoIfTheScopeIsCancelled(t *testing.T) {
	r := &receiver{}
	err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		lines := LogLines(ctx, r.send)
		require.NoError(t, lines.Add(ctx, "last words"))
		return errUser
	})
	require.ErrorIs(t, err, errUser)
	require.Equal(t, [][]string{{"last words"}}, r.batches)
}

func TestALineThatCannotBeSentIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errFull := errors.New("disk full")
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			return LogLines(ctx, func(context.Context, []string) error { return errFull }).Add(ctx, "line")
		})
		require.ErrorIs(t, err, errFull)
		var lost *batch.LostError[string]
		require.ErrorAs(t, err, &lost)
		require.Equal(t, []string{"line"}, lost.Items)
	})
}
