package byhand

import (
	"context"
	"log"
	"net"
	"sync"
	"time"
)

func WaitForAll(ctx context.Context, addresses []string, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var wg sync.WaitGroup
	for _, address := range addresses {
		wg.Go(func() {
			if err := accepts(ctx, address); err != nil {
				log.Printf("service %s is probably not ready: %v", address, err)
			}
		})
	}
	wg.Wait()
}

func accepts(ctx context.Context, address string) error {
	for ctx.Err() == nil {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		conn, err := new(net.Dialer).DialContext(attempt, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		time.Sleep(time.Second)
	}
	return ctx.Err()
}
