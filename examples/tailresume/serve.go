//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A server serves a file that grows.
type server struct {
	file *os.File
	over func() bool // whether it grows no more

	// block is what it begins at a multiple of, as a server does that knows
	// blocks or lines: what the client has already, it gets again.
	block int64
}

const (
	glance    = 10 * time.Millisecond // how often the file is looked at
	heartbeat = time.Second           // how often a client hears that there is nothing new
	patience  = 10 * time.Second      // for clients that do not speak, or do not listen
)

// serve serves the connections of ln until ctx is done. When it returns, all of
// them are closed. The trouble of one connection is not that of the others.
func (s *server) serve(ctx context.Context, ln net.Listener) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
		defer stop()
		for {
			conn, err := ln.Accept()
			if ctx.Err() != nil {
				if err == nil {
					_ = conn.Close()
				}
				return context.Cause(ctx)
			}
			if err != nil {
				return err
			}
			async.Go(ctx, func(ctx context.Context) error {
				_ = s.attend(ctx, conn) // the client knows as much, and comes again
				return nil
			}, async.Name("connection"))
		}
	}, async.Name("server"))
}

// attend sends the log over one connection, up to its end.
func (s *server) attend(ctx context.Context, conn net.Conn) error {
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(patience))
	at, err := readRequest(bufio.NewReader(conn))
	if err != nil {
		return err
	}
	if info, err := s.file.Stat(); err != nil || at > info.Size() {
		_, err := fmt.Fprintf(conn, "ERROR the log has no byte %d: it is not the one you have begun with\n", at)
		return err
	}
	at -= at % s.block
	buf := make([]byte, 4096)
	for {
		n, err := s.read(ctx, buf, at)
		if err != nil {
			return err
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		if n < 0 {
			return writeEnd(conn, at)
		}
		if err := writeData(conn, at, buf[:n]); err != nil {
			return err
		}
		at += int64(n)
	}
}

// read reads what the log has at an offset. If there is nothing yet, it waits
// for it, for a heartbeat at most; -1 says that there will never be anything.
func (s *server) read(ctx context.Context, buf []byte, at int64) (n int, err error) {
	for waited := time.Duration(0); waited < heartbeat; waited += glance {
		over := s.over() // before the read: what is not there by now will not come
		n, err := s.file.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if n > 0 {
			return n, nil
		}
		if over {
			return -1, nil
		}
		if err := async.Sleep(ctx, glance); err != nil {
			return 0, err
		}
	}
	return 0, nil
}
