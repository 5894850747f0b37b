package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// listen receives hints on a connection of its own until stop is called. A pool of one
// connection would have nothing left.
func (b *backend) listen() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		pause := 50 * time.Millisecond
		for ctx.Err() == nil {
			began := time.Now()
			b.receive(ctx)
			if pause = min(2*pause, 5*time.Second); time.Since(began) > time.Minute {
				pause = 50 * time.Millisecond
			}
			sleep(ctx, pause)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// receive receives hints until the connection fails.
func (b *backend) receive(ctx context.Context) {
	c, err := pgx.ConnectConfig(ctx, b.pool.Config().ConnConfig)
	if err != nil {
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	}()
	if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{channel(b.client)}.Sanitize()); err != nil {
		return
	}
	b.hub.HintAll() // nobody has told what was before
	for {
		waiting, cancel := context.WithTimeout(ctx, 30*time.Second)
		n, err := c.WaitForNotification(waiting)
		quiet := err != nil && waiting.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			if name, ok := hinted(n.Payload); ok {
				b.hub.Hint(name)
			}
		case quiet: // a network that is silent does not say so
			asking, cancel := context.WithTimeout(ctx, 5*time.Second)
			err := c.Ping(asking)
			cancel()
			if err != nil {
				return
			}
		default:
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
