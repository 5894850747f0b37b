package cookbook

import (
	"context"
	"net"
	"time"

	"github.com/ambit-go/ambit/async"
)

// WaitForAll waits until every address accepts connections, for at most limit
// each. It returns what became of each, in the order of the addresses, also
// when ctx is cancelled; the values count the attempts.
func WaitForAll(ctx context.Context, addresses []string, limit time.Duration) ([]async.Result[int], error) {
	all := async.ForkJoin(ctx, addresses, accepts, async.ItemTimeout(limit))
	return all.Await(context.WithoutCancel(ctx), 0) // ctx ends the work, and that ends the wait
}

// WaitForAny waits until one of the addresses accepts connections and returns
// its index. The others are no longer asked when it returns.
func WaitForAny(ctx context.Context, addresses []string, limit time.Duration) (index int, err error) {
	var tasks []func(context.Context) (int, error)
	for i, address := range addresses {
		tasks = append(tasks, func(ctx context.Context) (int, error) {
			_, err := accepts(ctx, address)
			return i, err
		})
	}
	err = async.Scope(ctx, func(ctx context.Context) error {
		index, err = async.Any(ctx, tasks...).Await(ctx, limit)
		return err
	})
	return index, err
}

// accepts dials address until somebody answers, and counts.
func accepts(ctx context.Context, address string) (int, error) {
	attempts := 0
	dialer := net.Dialer{Timeout: time.Second}
	pause := async.Jitter(0.2, async.Backoff(20*time.Millisecond, time.Second))
	return async.Poll(ctx, pause, func(ctx context.Context) (int, bool, error) {
		attempts++
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return attempts, false, async.Again(err)
		}
		return attempts, true, conn.Close()
	}, async.Grace(time.Second)).Await(ctx, 0) // with a grace the error tells the last attempt, too
}
