//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A follower receives a log over as many connections as it takes.
type follower struct {
	dial     func(ctx context.Context) (net.Conn, error)
	emit     func(p []byte) error // takes lines; must not keep p
	report   func(format string, args ...any)
	pause    async.Interval // between connections, by how many have brought nothing
	attempts int            // that may bring nothing, in a row
	silence  time.Duration  // after which a connection counts as broken

	offset int64  // bytes received: where the next connection begins
	line   []byte // those that were not emitted yet, because their line has not ended
	conns  int    // connections made
	again  int64  // bytes that came although they were there already
}

// longest is what a line may have before it is emitted in pieces.
const longest = 64 << 10

// follow receives the log up to its end and emits it line by line. When a
// connection breaks it makes another, after a pause that grows until one brings
// something. It gives up when attempts in a row bring nothing, when emit fails,
// or when ctx is done; it is never in a pause then, nor in a read.
//
// emit is called on the calling goroutine: nothing is received that nobody
// takes, and when follow has returned it is not called again.
func (f *follower) follow(ctx context.Context) error {
	for fruitless := 0; ; {
		before := f.offset
		err := f.connect(ctx)
		switch broken := new(brokenError); {
		case err == nil:
			return f.flush() // the last line, which need not have a newline
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.As(err, &broken):
			return err
		}
		if f.offset > before {
			fruitless = 0
		}
		if fruitless++; fruitless > f.attempts {
			return fmt.Errorf("%d attempts in a row have brought nothing; the last: %w", f.attempts, err)
		}
		d := f.pause(fruitless)
		f.report("at byte %d: %v; next attempt in %v", f.offset, err, d.Round(time.Microsecond))
		if err := async.Sleep(ctx, d); err != nil {
			return err
		}
	}
}

// A brokenError is about a connection, not about the log.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

// connect makes one connection and takes what it brings. It returns nil at the
// end of the log.
func (f *follower) connect(ctx context.Context) error {
	conn, err := f.dial(ctx)
	if err != nil {
		return &brokenError{err}
	}
	f.conns++
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // a read looks at no context
	defer stop()

	_ = conn.SetWriteDeadline(time.Now().Add(f.silence))
	if err := writeRequest(conn, f.offset); err != nil {
		return &brokenError{err}
	}
	r := bufio.NewReaderSize(&silentReader{conn, f.silence}, 4096)
	for {
		over, err := f.next(r)
		if over || err != nil {
			return f.explain(err)
		}
	}
}

// A silentReader reads from a connection, and fails when nothing has come for so
// long. Each read has a deadline of its own: a frame may take its time as long as
// some of it comes.
type silentReader struct {
	conn    net.Conn
	silence time.Duration
}

func (r *silentReader) Read(p []byte) (int, error) {
	_ = r.conn.SetReadDeadline(time.Now().Add(r.silence))
	return r.conn.Read(p)
}

// explain tells errors of the connection from others.
func (f *follower) explain(err error) error {
	wrong, gone := new(wrongError), new(emitError)
	switch {
	case err == nil, errors.As(err, &wrong), errors.As(err, &gone):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("nothing has come for %v", f.silence)
	}
	return &brokenError{err}
}

// next takes a frame. It reports whether that was the end of the log.
func (f *follower) next(r *bufio.Reader) (over bool, err error) {
	head, err := readFrame(r)
	if err != nil {
		return false, err
	}
	if head.kind == "END" {
		if head.offset != f.offset {
			return false, &wrongError{fmt.Sprintf("the log has ended with byte %d, but %d have come", head.offset, f.offset)}
		}
		return true, nil
	}
	var buf [4096]byte
	for at, end := head.offset, head.offset+head.length; at < end; {
		// What a read brings counts, also beside an error.
		n, err := r.Read(buf[:min(int64(len(buf)), end-at)])
		if err := f.take(at, buf[:n]); err != nil {
			return false, err
		}
		if at += int64(n); err != nil {
			return false, err
		}
	}
	return false, nil
}

// take takes the bytes of p that are new.
func (f *follower) take(at int64, p []byte) error {
	if at > f.offset {
		return &wrongError{fmt.Sprintf("bytes %d to %d of the log were left out", f.offset, at)}
	}
	known := min(f.offset-at, int64(len(p)))
	f.again += known
	p = p[known:]
	f.offset += int64(len(p))
	f.line = append(f.line, p...)
	if end := bytes.LastIndexByte(f.line, '\n') + 1; end > 0 {
		return f.emitFirst(end)
	}
	if len(f.line) >= longest {
		return f.flush()
	}
	return nil
}

// flush emits what is there of a line.
func (f *follower) flush() error { return f.emitFirst(len(f.line)) }

func (f *follower) emitFirst(n int) error {
	if n == 0 {
		return nil
	}
	if err := f.emit(f.line[:n]); err != nil {
		return &emitError{err}
	}
	f.line = append(f.line[:0], f.line[n:]...)
	return nil
}

// An emitError is that of a consumer who takes no more.
type emitError struct{ err error }

func (e *emitError) Error() string { return e.err.Error() }
func (e *emitError) Unwrap() error { return e.err }
