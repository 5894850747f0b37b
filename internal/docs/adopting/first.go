package adopting

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Loose may return before get has: if ctx carries no scope, nobody joins it.
func Loose(ctx context.Context, get func(ctx context.Context) (string, error)) (string, error) {
	return async.Execute(ctx, get).Await(ctx, time.Second)
}

// Joined returns after get has, whatever ctx it is called with.
func Joined(ctx context.Context, get func(ctx context.Context) (string, error)) (page string, err error) {
	err = async.Scope(ctx, func(ctx context.Context) error {
		page, err = async.Execute(ctx, get).Await(ctx, time.Second)
		return err
	})
	return page, err
}

// WaitABit waits for an upload, at most 5 s, and then lets it run on.
func WaitABit(ctx context.Context, upload *async.Future[int]) (n int, over bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, _ = upload.Wait(ctx)
	n, err, over = upload.Result()
	return n, over, err
}

// StopAndJoin stops an upload and returns when it has gone, also if ctx is
// done, as it may be in a deferred call.
func StopAndJoin(ctx context.Context, upload *async.Future[int], why error) (n int, err error) {
	upload.Cancel(why)
	return upload.Join(ctx)
}
