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
		{"late", 10 * time.Second, func(ctx context.Context, p *port) error {
			return errors.Join(async.Sleep(ctx, time.Second), p.open(ctx))
		}},
		{"flapping", 10 * time.Second, flap},
		{"up", 10 * time.Second, func(ctx context.Context, p *port) error { return p.open(ctx) }},
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
// Accept, and nobody does.
func (p *port) open(ctx context.Context) (err error) {
	p.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", p.address)
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
