package record_test

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/record"
)

// Failures that nobody would see, because the scope carries on.
func ExampleLog() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.LevelKey || a.Key == "task" || a.Key == "err" {
			return a
		}
		return slog.Attr{}
	}}))
	carryOn := async.OnFailure(func(error) error { return nil })
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(context.Context) error { return errors.New("connection reset") }, async.Name("conn 1"))
		return nil
	}, carryOn, async.Observe(record.Log(log)))
	// Output: level=WARN task="conn 1" err="connection reset"
}
