package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/cheggaaa/pb/v3"
	"github.com/mattn/go-isatty"
)

// A progress counts what has been done, for whoever watches. The counters are
// atomic because they are the one thing that the tasks of a crawl share.
type progress struct {
	found, done, bytes atomic.Int64

	out      io.Writer
	terminal bool
}

// newProgress returns a display on out: a bar if that is a terminal, a line a
// second if it is not.
func newProgress(out io.Writer) *progress {
	file, ok := out.(*os.File)
	return &progress{out: out, terminal: ok && isatty.IsTerminal(file.Fd()) && os.Getenv("TERM") != "dumb"}
}

func (p *progress) queued() { p.found.Add(1) }

func (p *progress) visited(bytes int64) {
	p.bytes.Add(bytes)
	p.done.Add(1)
}

// show shows the progress until ctx is done.
func (p *progress) show(ctx context.Context) error {
	if p.terminal {
		p.showBar(ctx)
	} else {
		p.showLines(ctx)
	}
	return nil
}

// showBar draws a bar, and wipes it in the end to make room for the report. The
// library would draw by itself, on a goroutine of its own; told to be static it
// leaves that to us, so that the bar is gone when our scope ends.
func (p *progress) showBar(ctx context.Context) {
	bar := pb.ProgressBarTemplate(`{{counters .}} links visited {{bar .}} {{speed . "%s/s"}} {{etime .}}`).New(0)
	bar.Set(pb.Static, true).Set(pb.CleanOnFinish, true).Set(pb.Terminal, true).SetWriter(p.out).Start()
	every(ctx, 200*time.Millisecond, func() {
		bar.SetTotal(p.found.Load()).SetCurrent(p.done.Load()).Write()
	})
	bar.Finish().Write()
}

// showLines prints a line a second.
func (p *progress) showLines(ctx context.Context) {
	begin := time.Now()
	every(ctx, time.Second, func() {
		done := int(p.done.Load())
		fmt.Fprintf(p.out, "crawler: %s of %s links visited so far, %s, %s a second\n", count(done),
			count(int(p.found.Load())), megabytes(p.bytes.Load()), count(int(float64(done)/time.Since(begin).Seconds())))
	})
}

// every calls f every d until ctx is done.
func every(ctx context.Context, d time.Duration, f func()) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f()
		case <-ctx.Done():
			return
		}
	}
}
