package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ambit-go/ambit/locks/internal/pause"
)

// listen receives hints on a connection of its own until stop is called. A pool of one
// connection would have nothing left.
func (b *backend) listen() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait := 50 * time.Millisecond
		for ctx.Err() == nil {
			began := time.Now()
			b.receive(ctx)
			if wait = min(2*wait, 5*time.Second); time.Since(began) > quietTime/2 {
				wait = 50 * time.Millisecond
			}
			_ = pause.For(ctx, wait)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// receive receives hints until the connection fails. Where none come it makes them.
func (b *backend) receive(ctx context.Context) {
	c, err := connect(ctx, b.pool.Config())
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
	for b.hears(ctx, c) {
		for {
			waiting, cancel := context.WithTimeout(ctx, quietTime)
			n, err := c.WaitForNotification(waiting)
			quiet := err != nil && waiting.Err() != nil && ctx.Err() == nil
			cancel()
			if quiet {
				break // a network that is silent does not say so
			}
			if err != nil {
				return
			}
			b.hint(n)
		}
	}
	b.poll(ctx)
}

const (
	// quietTime is how long nothing need come until it is tried whether anything would.
	quietTime = 30 * time.Second
	// hearTime is how long a notification takes at most.
	hearTime = 2 * time.Second
	// pollTime is how often those who wait ask where notifications do not come.
	pollTime = 100 * time.Millisecond
)

// hears says whether notifications come: a pooler that gives each transaction another
// connection lets LISTEN succeed, and nothing arrives. It notifies this process, by a
// connection of the pool.
func (b *backend) hears(ctx context.Context, c *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, hearTime)
	defer cancel()
	if _, err := b.pool.Exec(ctx, "SELECT pg_notify($1, '')", channel(b.client)); err != nil {
		return false
	}
	n, err := c.WaitForNotification(ctx)
	if err == nil {
		b.hint(n)
	}
	return err == nil
}

func (b *backend) hint(n *pgconn.Notification) {
	if name, ok := hinted(n.Payload); ok {
		b.hub.Hint(name)
	}
}

// poll has those who wait ask by themselves for a while, after which it is tried anew whether
// notifications come.
func (b *backend) poll(ctx context.Context) {
	for range quietTime / pollTime {
		if pause.For(ctx, pollTime) != nil {
			return
		}
		b.hub.HintAll()
	}
}
