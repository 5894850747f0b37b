package byhand

import (
	"context"
	"time"
)

type Poller struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (p *Poller) Start(ctx context.Context, interval time.Duration, poll func(ctx context.Context)) {
	ctx, p.cancel = context.WithCancel(ctx)
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		for ctx.Err() == nil {
			poll(ctx)
			select {
			case <-time.After(interval):
			case <-ctx.Done():
			}
		}
	}()
}

func (p *Poller) Stop() {
	p.cancel()
	<-p.done
}
