//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/proc"
	"golang.org/x/net/netutil"
)

// demo has a script write a log, serves it over connections that break, and
// follows it with f. What has been received must be what was written.
func (c *config) demo(ctx context.Context, f *follower) error {
	log, err := createLog(ctx)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f.dial = dialer(ln.Addr().String(), c.silence)
	producer := async.Start(ctx, func(ctx context.Context) error { return produce(ctx, c.script, log) }, async.Name("producer"))
	s := &server{
		file:  log,
		over:  func() bool { return producer.State() == async.Done },
		block: 64,
	}
	async.Go(ctx, func(ctx context.Context) error {
		const atOnce = 16 // more than one follower ever needs
		return s.serve(ctx, netutil.LimitListener(newBrittleListener(ln, c.cut, c.seed), atOnce))
	}, async.Daemon(), async.Name("serve"))

	received := sha256.New()
	emit := f.emit
	f.emit = func(p []byte) error {
		received.Write(p)
		return emit(p)
	}
	if err := takeAll(ctx, f); err != nil {
		return err
	}
	_, err = producer.Wait(ctx) // a script that has failed has written a log all the same
	return errors.Join(err, compare(log, received.Sum(nil), f))
}

// createLog creates a file that is removed when the scope of ctx ends.
func createLog(ctx context.Context) (*os.File, error) {
	log, err := os.CreateTemp("", "tailresume-*.log")
	if err != nil {
		return nil, err
	}
	async.OnExit(ctx, func(context.Context, error) error {
		return errors.Join(log.Close(), os.Remove(log.Name()))
	})
	return log, nil
}

// produce runs the script, in a process group of its own, with the log as its
// output.
func produce(ctx context.Context, script string, log *os.File) error {
	_, err := proc.Run(ctx, proc.Command{
		Args:   []string{"bash", "-c", script},
		Name:   "script",
		Stdout: log,
		Stderr: log,
		Grace:  2 * time.Second,
	})
	return err
}

// compare fails unless the checksum of what was received is that of the log.
func compare(log *os.File, received []byte, f *follower) error {
	written := sha256.New()
	size, err := io.Copy(written, io.NewSectionReader(log, 0, 1<<62))
	if err != nil {
		return err
	}
	if !bytes.Equal(written.Sum(nil), received) {
		return fmt.Errorf("%d bytes were received, and they are not the %d that were written", f.offset, size)
	}
	f.report("%d bytes over %d connections, and %d that had to be trimmed; sha256 %.8x, as written",
		size, f.conns, f.again, received)
	return nil
}
