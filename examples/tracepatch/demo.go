//go:build unix

package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

// demo calls body with the address of a server that has faults and prints the
// log as it sees it. The server outlives body, however that ends.
func (c *config) demo(ctx context.Context, std cli.Streams, body func(ctx context.Context, url string) error) error {
	out := cli.Out{W: std.Out}
	s := &traceServer{fault: randomFaults(c.seed), seen: func(p []byte) { out.Printf("%s", p) }}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	err = async.Scope(context.WithoutCancel(ctx), func(serverCtx context.Context) error {
		async.Go(serverCtx, func(ctx context.Context) error {
			stop := context.AfterFunc(ctx, func() { _ = server.Close() })
			defer stop()
			if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		}, async.Daemon(), async.Name("server"))
		return body(ctx, "http://"+ln.Addr().String())
	})
	if err == nil && errors.Is(out.Err(), syscall.EPIPE) {
		return &cli.ExitError{Code: cli.StatusPipe} // nobody wants to see it any more
	}
	return errors.Join(err, out.Err())
}
