package pagetest

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/page"
	taskstore "github.com/ambit-go/ambit/taskqueue/store"
)

func TestARunOfMoreThanAnHourIsMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		_, err = q.Enqueue(ctx, taskqueue.Task{Type: "long"})
		require.NoError(t, err)
		_, err = s.Claim(ctx, taskstore.ClaimRequest{Queue: q.Name(), Worker: "w", Nonce: "1", Max: 1, Lease: 24 * time.Hour})
		require.NoError(t, err)
		time.Sleep(taskqueue.StuckAfter)
		_, text, _ := ask(page.New(s), http.MethodGet, "/")
		assert.NotContains(t, text, "stuck?")
		time.Sleep(time.Second)
		_, text, _ = ask(page.New(s), http.MethodGet, "/")
		assert.Contains(t, text, "stuck?")
	})
}

func TestARunThatTakesMuchLongerThanOthersOfItsKindIsMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		_, err = q.EnqueueAll(ctx, tasks(100))
		require.NoError(t, err)
		h := func(context.Context, *taskqueue.Claim) error { time.Sleep(30 * time.Millisecond); return nil }
		require.NoError(t, q.Work(ctx, taskqueue.Handlers{"c": h}, taskqueue.WorkUntilEmpty()))
		_, err = q.EnqueueAll(ctx, []taskqueue.Task{{Type: "c"}, {Type: "other"}})
		require.NoError(t, err)
		_, err = s.Claim(ctx, taskstore.ClaimRequest{Queue: q.Name(), Worker: "w", Nonce: "1", Max: 2, Lease: time.Hour})
		require.NoError(t, err)
		for _, want := range []int{0, 1} { // of the one whose kind is known
			time.Sleep(20 * time.Second)
			_, text, _ := ask(page.New(s), http.MethodGet, "/")
			assert.Equal(t, want, strings.Count(text, "stuck?"))
		}
	})
}
