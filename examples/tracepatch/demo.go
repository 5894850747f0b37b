//go:build unix

package main

import (
	"context"
	"errors"
	"syscall"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/loopback"
)

// demo calls body with the address of a server that has faults and prints the
// log as it sees it. The server outlives body, however that ends.
func (c *config) demo(ctx context.Context, std cli.Streams, body func(ctx context.Context, url string) error) error {
	out := cli.Out{W: std.Out}
	s := &traceServer{fault: randomFaults(c.seed), seen: func(p []byte) { out.Printf("%s", p) }}
	err := async.Scope(context.WithoutCancel(ctx), func(server context.Context) error {
		url, err := loopback.Serve(server, s)
		if err != nil {
			return err
		}
		return body(ctx, url)
	}, async.Name("demo"))
	if err == nil && errors.Is(out.Err(), syscall.EPIPE) {
		return &cli.ExitError{Code: cli.StatusPipe} // nobody wants to see it any more
	}
	return errors.Join(err, out.Err())
}
