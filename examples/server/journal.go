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
)

// A journal writes a line for each order that was done: a hundred at a time, or
// what has waited for 200 ms.
type journal struct {
	path string // "": the standard output

	lines   *batch.Batch[string] // set by open
	out     io.Writer
	written atomic.Int64
}

// open opens the file, and the batch of lines for it. In between the journal is idle: the batch
// has a goroutine when there is something to write, no other.
//
// The journal is a resource: the scope of ctx ends when the services that use it have drained.
// Hooks are called last in, first out: what is left is written, then the file is closed. The ctx of
// the last write is alive, so that is so after a second signal, too.
func (j *journal) open(ctx context.Context) error {
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
