package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
	"github.com/ambit-go/ambit/service"
)

// A journal writes a line for each order that was done: a hundred at a time, or
// what has waited for 200 ms.
type journal struct {
	path string // "": the standard output
	stop chan struct{}

	lines   *batch.Batch[string] // set by run before it is ready
	out     io.Writer
	written atomic.Int64
}

func newJournal(path string) *journal { return &journal{path: path, stop: make(chan struct{})} }

// run opens the journal and closes it. In between it is idle: the batch has a
// goroutine when there is something to write, no other.
//
// When run returns its scope ends, hooks last in, first out: what is left is
// written, then the file is closed. The ctx of the last write is alive, so that is so
// after a second signal, too.
func (j *journal) run(ctx context.Context) error {
	j.out = os.Stdout
	if j.path != "" {
		f, err := os.OpenFile(j.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		async.OnExit(ctx, func(context.Context, error) error { return f.Close() })
		j.out = f
	}
	j.lines = batch.New(ctx, j.write, batch.Items(100), batch.Age(200*time.Millisecond), batch.Capacity(1000))
	service.Ready(ctx) // the worker is started now, and not before
	select {
	case <-j.stop:
	case <-ctx.Done():
	}
	return nil
}

// drain has run come to its end. Without it the ctx of run would be cancelled, and
// with it the write that is under way.
func (j *journal) drain(context.Context) error {
	close(j.stop)
	return nil
}

// add has an order written. It waits when the disk does not keep up.
func (j *journal) add(ctx context.Context, o order) error {
	return j.lines.Add(ctx, fmt.Sprintf("%d %s\n", o.number, o.text))
}

// write is the flush of the batch. An error of it fails the service, and the
// program: nothing more is accepted, and the error names the lines that are lost.
func (j *journal) write(_ context.Context, lines []string) error {
	if _, err := io.WriteString(j.out, strings.Join(lines, "")); err != nil {
		return err
	}
	j.written.Add(int64(len(lines)))
	return nil
}
