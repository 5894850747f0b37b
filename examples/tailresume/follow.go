package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A follower receives a log over as many connections as it takes. It asks for the log
// from a byte on:
//
//	GET url    Range: bytes=374-
//
//	200, 206   Log-Offset: 320    the log from byte 320 on: at most where it was asked for
//	5xx                           later
//	others                        it will never be any better
//
// The body goes on for as long as the log grows. HTTP says where it ends, by its length
// or in chunks: that is what tells the end of the log from that of a connection. An answer
// that ends with its connection, as HTTP 1.0 has it, is refused.
type follower struct {
	client   *http.Client
	url      string
	out      io.Writer      // takes lines
	pause    async.Interval // between connections, by how many have brought nothing
	attempts int            // that may bring nothing, in a row

	offset int64  // bytes received: where the next connection begins
	line   []byte // those that were not written yet, because their line has not ended
	conns  int    // connections made
	again  int64  // bytes that came although they were there already
}

// longest is what a line may have before it is written in pieces.
const longest = 64 << 10

// A brokenError is about a connection, not about the log.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// follow receives the log up to its end and writes it line by line. When a connection
// breaks it makes another, after a pause that grows until one brings something. It
// gives up when attempts in a row bring nothing, when out does, or when ctx is done.
//
// It writes on the calling goroutine: nothing is received that nobody takes, and when
// follow has returned nothing is written.
func (f *follower) follow(ctx context.Context) error {
	for fruitless := 0; ; {
		before := f.offset
		err := f.connect(ctx)
		switch {
		case err == nil:
			return f.flush(len(f.line)) // the last line, which need not have a newline
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.As(err, new(*brokenError)):
			return err
		}
		if f.offset > before {
			fruitless = 0
		}
		if fruitless++; fruitless > f.attempts {
			return fmt.Errorf("%d attempts in a row have brought nothing; the last: %w", f.attempts, err)
		}
		d := f.pause(fruitless)
		say("at byte %d: %v; next attempt in %v", f.offset, err, d.Round(time.Microsecond))
		_ = async.Sleep(ctx, d) // if ctx has ended, so does the next attempt
	}
}

// connect makes one connection and takes what it brings. It returns nil at the end of
// the log.
func (f *follower) connect(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Range", fmt.Sprintf("bytes=%d-", f.offset))
	answer, err := f.client.Do(r)
	if err != nil {
		return &brokenError{err}
	}
	f.conns++
	defer func() { _ = answer.Body.Close() }()
	at, err := f.begin(answer)
	if err != nil {
		return err
	}
	for buf := make([]byte, 4096); ; {
		n, err := answer.Body.Read(buf) // what it brings counts, also beside an error
		if err := f.take(at, buf[:n]); err != nil {
			return err
		}
		at += int64(n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &brokenError{err}
		}
	}
}

// begin returns the offset at which an answer begins.
func (f *follower) begin(answer *http.Response) (int64, error) {
	switch s := answer.StatusCode; {
	case s >= 500:
		return 0, &brokenError{fmt.Errorf("%.100q", answer.Status)} // a terminal would take it for a command
	case s == http.StatusRequestedRangeNotSatisfiable:
		return 0, fmt.Errorf("the log has no byte %d: it is not the one that was begun with", f.offset)
	case s != http.StatusOK && s != http.StatusPartialContent:
		return 0, fmt.Errorf("%.100q", answer.Status)
	case answer.ContentLength < 0 && answer.ProtoMajor < 2 && answer.TransferEncoding == nil:
		return 0, errors.New("the end of the log could not be told from that of the connection")
	}
	at, err := strconv.ParseInt(answer.Header.Get("Log-Offset"), 10, 64)
	if err != nil || at < 0 || at > f.offset {
		return 0, fmt.Errorf("byte %d was asked for, and the answer begins with %q", f.offset, answer.Header.Get("Log-Offset"))
	}
	return at, nil
}

// take takes the bytes of p that are new.
func (f *follower) take(at int64, p []byte) error {
	known := min(f.offset-at, int64(len(p)))
	f.again += known
	f.offset += int64(len(p)) - known
	f.line = append(f.line, p[known:]...)
	end := bytes.LastIndexByte(f.line, '\n') + 1
	if end == 0 && len(f.line) >= longest {
		end = len(f.line)
	}
	return f.flush(end)
}

// flush writes the first n bytes of what is there.
func (f *follower) flush(n int) error {
	if n == 0 {
		return nil
	}
	_, err := f.out.Write(f.line[:n])
	f.line = append(f.line[:0], f.line[n:]...)
	return err
}
