package byhand

import (
	"context"
	"errors"
	"sync"
)

func PingAll(ctx context.Context, hosts []string, ping func(context.Context, string) error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(hosts))
	slots := make(chan struct{}, 8)
	for i, host := range hosts {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = ping(ctx, host)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
