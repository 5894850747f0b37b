package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/proc"
	"github.com/ambit-go/ambit/service"
)

// A demo is a log, and a server of it that cuts.
type demo struct {
	*follower
	script string
	cut    int
}

// run has the script write a log, serves it over connections that break, and follows
// it. The received log must be the written one. When it returns script, server
// and file are gone.
func (d *demo) run(ctx context.Context) error {
	log, err := os.CreateTemp("", "tailresume-*.log")
	if err != nil {
		return err
	}
	defer func() { _, _ = log.Close(), os.Remove(log.Name()) }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.url = "http://" + l.Addr().String()
	received := sha256.New()
	d.out = io.MultiWriter(received, d.out)
	var lost error // what has ended the script, if it was ended
	err = async.Scope(ctx, func(ctx context.Context) error {
		producer := async.Start(ctx, func(ctx context.Context) error {
			_, err := proc.Run(ctx, proc.Command{Args: []string{"bash", "-c", d.script}, Name: "script",
				Stdout: log, Stderr: log, Grace: 2 * time.Second, Hurry: service.Hurry(ctx), DieWithParent: true})
			return err
		}, async.Name("script"))
		s := &http.Server{Handler: &logServer{file: log, over: func() bool { return producer.State() == async.StateDone }}}
		async.Go(ctx, func(context.Context) error {
			_ = s.Serve(&brittleListener{l, rand.New(rand.NewPCG(uint64(d.cut), 0)), d.cut})
			return nil
		}, async.Name("server"), async.Daemon(), async.OnAbort(func(context.Context, error) error { return s.Close() }))
		if lost = d.follow(ctx); lost != nil {
			return lost
		}
		_, err := producer.Wait(ctx) // a script that has failed has written a log all the same
		return errors.Join(err, compare(log, received.Sum(nil), d.follower))
	})
	return cmp.Or(lost, err)
}

// compare fails unless the checksum of what was received is that of the log.
func compare(log *os.File, received []byte, f *follower) error {
	all, err := os.ReadFile(log.Name())
	if err != nil {
		return err
	}
	if written := sha256.Sum256(all); string(written[:]) != string(received) {
		return fmt.Errorf("%d bytes were received, and they are not the %d that were written", f.offset, len(all))
	}
	say("%d bytes over %d connections, and %d that had to be trimmed; sha256 %.8x, as written", len(all), f.conns, f.again, received)
	return nil
}
