package pagetest

import (
	"net/http"
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
