package main

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A report is how things stand, for people.
type report struct {
	server  *server
	worker  *worker
	journal *journal
}

func (r report) say() {
	say("%d accepted, %d written, %d panics", r.server.accepted.Load(), r.journal.written.Load(), r.worker.restarts.Load())
}

// every returns a loop that reports until its ctx is done.
func (r report) every(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		f := async.Repeat(ctx, async.Every(d), func(context.Context) error {
			r.say()
			return nil
		}, async.AfterInterval())
		_, err := f.Wait(ctx)
		return err
	}
}
