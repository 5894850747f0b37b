package adopting_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// mistakes returns what is seen of a mistake, under the words of it that
// docs/adopting.md shows.
var mistakes = map[string]func(ctx context.Context) string{
	"Go on a context without a scope": func(context.Context) (seen string) {
		defer func() { seen = fmt.Sprint(recover()) }()
		async.Go(context.Background(), func(context.Context) error { return nil })
		return ""
	},
	"scope has ended: deploy": func(ctx context.Context) string {
		var kept context.Context
		_ = async.Scope(ctx, func(ctx context.Context) error { kept = ctx; return nil }, async.Name("deploy"))
		_, err := async.Start(kept, func(context.Context) error { return nil }).Await(ctx, 0)
		return err.Error()
	},
	"saveReport: nobody awaited it: disk full": func(ctx context.Context) string {
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Start(ctx, func(context.Context) error { return errors.New("disk full") }, async.Name("saveReport"))
			return nil
		}).Error()
	},
	"limit 1ms of an Await": func(ctx context.Context) string {
		f := async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		async.Go(ctx, func(ctx context.Context) error { _, _ = f.Await(ctx, time.Millisecond); return nil })
		_, err := f.Await(ctx, time.Second)
		return err.Error()
	},
	"await cycle: a -> b -> a": func(ctx context.Context) string {
		var b *async.Future[struct{}]
		var refused error
		started := make(chan struct{})
		a := async.Start(ctx, func(ctx context.Context) error {
			<-started
			time.Sleep(time.Second) // b waits for this task
			_, refused = b.Await(ctx, 0)
			return nil
		}, async.Name("a"))
		b = async.Start(ctx, func(ctx context.Context) error { <-started; _, _ = a.Await(ctx, 0); return nil }, async.Name("b"))
		close(started)
		_, _ = b.Wait(ctx)
		return refused.Error()
	},
}

func TestThePageShowsWhatIsSeenOfMistakes(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "adopting.md"))
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(page), "## Mistakes and how they look")
	for words, do := range mistakes {
		t.Run(words, func(t *testing.T) {
			require.Contains(t, table, "`"+words+"`")
			synctest.Test(t, func(t *testing.T) { require.Contains(t, do(asynctest.Context(t)), words) })
		})
	}
}
