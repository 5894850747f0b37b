package jobqueue_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/async/picture"
	"github.com/ambit-go/ambit/jobqueue"
)

// Whoever waits for a job says so, and how the queue stands.
func TestAPictureShowsWhoWaitsForAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		q := jobqueue.New[string]()
		end := make(chan struct{})
		take := func(name string) {
			async.Go(ctx, func(ctx context.Context) error { _, _ = q.Take(ctx, 1); <-end; return nil }, async.Name(name))
		}
		take("first")
		synctest.Wait()
		require.True(t, q.Add("a"))
		synctest.Wait()
		take("second")
		synctest.Wait()
		pic := async.Snapshot(async.Of(ctx))
		for _, n := range pic.Nodes {
			switch n.Name {
			case "first":
				require.Empty(t, n.Waits, "it has its job")
			case "second":
				w := n.Waits[0]
				w.Mark = 0
				require.Equal(t, picture.Wait{How: picture.WayPart, Part: 1, Text: "a job"}, w)
			}
		}
		require.Equal(t, []picture.Part{{Kind: "queue", Active: 1}}, pic.Parts)
		q.Close()
		close(end)
	})
}
