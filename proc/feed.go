//go:build unix

package proc

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A feed carries input from a reader to a pipe.
type feed struct {
	r    io.Reader
	w    *os.File
	fail context.CancelCauseFunc // told the error of r

	over    atomic.Bool // set by end: nobody reads the pipe any more
	reading atomic.Bool // it is in a call of r
	done    *async.Future[struct{}]
}

// start begins to carry. A feed ends: its reader does, or end has been called
// and a Read that is under way returns.
func (f *feed) start() {
	f.done = async.Start(home, f.run, async.Name("stdin"))
}

// run carries until the reader or the command comes to its end. If the reader
// fails the pipe stays open until the command has been stopped: it must not take
// what it has got for the whole.
func (f *feed) run(context.Context) error {
	// As a task of its own, whose panic is an error here.
	_, err := async.Start(home, func(context.Context) error { return f.carry() }, async.Name("stdin")).Join(home)
	if err == nil {
		_ = f.w.Close()
		return nil
	}
	if f.over.Load() && !errors.As(err, new(*async.PanicError)) {
		return nil // nobody wanted it
	}
	lost := &InputError{err}
	f.fail(lost)
	return lost
}

// carry writes to the pipe what r has. It fails if r does; that nobody reads the
// pipe any more is no failure.
func (f *feed) carry() error {
	buf := make([]byte, 32<<10)
	for !f.over.Load() {
		f.reading.Store(true)
		n, err := f.r.Read(buf)
		f.reading.Store(false)
		if n > 0 {
			if _, err := f.w.Write(buf[:n]); err != nil {
				return nil
			}
		}
		switch err {
		case nil:
		case io.EOF: // and nothing around it, which would be a failure of the reader
			return nil
		default:
			return err
		}
	}
	return nil
}

// end closes the pipe, waits for the feed, and returns what has gone wrong in
// it. A Read that does not return is left alone: nobody wants what it reads.
func (f *feed) end() error {
	const moment = 10 * time.Millisecond // for a Read that is about to return
	f.over.Store(true)
	_ = f.w.Close() // a Write returns
	for {
		pause := time.NewTimer(moment)
		select {
		case <-f.done.Done():
			pause.Stop()
			_, err, _ := f.done.Result()
			return err
		case <-pause.C:
		}
		if f.reading.Load() {
			return nil
		}
	}
}
