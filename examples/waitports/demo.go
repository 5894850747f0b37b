package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ambit-go/ambit/async"
)

// openDemo opens ports in the scope of ctx, which closes them again, and returns
// them as targets: one that is up, one that opens late, one that never does, and
// one that cannot make up its mind.
func openDemo(ctx context.Context) ([]target, error) {
	kinds := []struct {
		name  string
		limit time.Duration
		serve func(ctx context.Context, p *port) error
	}{
		{"never", 2 * time.Second, func(context.Context, *port) error { return nil }},
		{"late", time.Minute, func(ctx context.Context, p *port) error {
			return errors.Join(async.Sleep(ctx, time.Second), p.open(ctx))
		}},
		{"flapping", time.Minute, flap},
		{"up", time.Minute, func(ctx context.Context, p *port) error { return p.open(ctx) }},
	}
	var targets []target
	for _, kind := range kinds {
		p, err := newPort()
		if err != nil {
			return nil, fmt.Errorf("cannot open a port for the demo: %w", err)
		}
		targets = append(targets, target{kind.name, p.address, kind.limit})
		async.OnExit(ctx, func(context.Context, error) error { return p.close() })
		async.Go(ctx, func(ctx context.Context) error {
			if err := kind.serve(ctx, p); ctx.Err() == nil {
				return err
			}
			return nil
		}, async.Daemon(), async.Name(kind.name))
	}
	targets[0].address = "127.0.0.1:1" // where nobody listens, and nobody is going to
	return targets, nil
}

// flap opens p for a moment every now and then, until it settles down.
func flap(ctx context.Context, p *port) error {
	for range 5 {
		if err := errors.Join(p.open(ctx), async.Sleep(ctx, 50*time.Millisecond), p.close(), async.Sleep(ctx, 300*time.Millisecond)); err != nil {
			return err
		}
	}
	return p.open(ctx)
}

// A port is open or it is not. Its address stays the same.
type port struct {
	address  string
	listener net.Listener // nil if it is closed
}

// newPort finds a port that is free, and leaves it closed.
func newPort() (*port, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &port{address: listener.Addr().String()}, listener.Close()
}

// open has the system accept connections: they are made before anybody calls
// Accept, and nobody does. A port that was closed may be somebody's for a
// moment, as the other end of a connection.
func (p *port) open(ctx context.Context) error {
	poll := async.Poll(ctx, async.Every(50*time.Millisecond), func(ctx context.Context) (net.Listener, bool, error) {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", p.address)
		if err != nil {
			return nil, false, async.Again(err)
		}
		return listener, true, nil
	}, async.Name("listen"))
	listener, err := poll.Await(context.WithoutCancel(ctx), 0) // ctx ends the poll, and that the wait
	p.listener = listener
	return err
}

func (p *port) close() error {
	if p.listener == nil {
		return nil
	}
	listener := p.listener
	p.listener = nil
	return listener.Close()
}
