//go:build unix

package main

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
)

// stop is the abort hook of the script: TERM, and if that does not end it KILL,
// and if that does not, the end of the connection. Each stage has its time, and
// the first that helps is the last. ctx is not cancelled with the script.
func (r *running) stop(ctx context.Context, _ error) error {
	patience, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.Hurry != nil {
		defer context.AfterFunc(r.Hurry, cancel)()
	}
	stages := []struct {
		signal string
		within context.Context
		wait   time.Duration
	}{{"TERM", patience, r.Limits.Term}, {"KILL", ctx, r.Limits.Kill}}

	for _, stage := range stages {
		async.Go(ctx, func(context.Context) error { // beside us: it blocks if the server does not read
			_ = r.signal(stage.signal) // whether it helped is seen at the end of the script
			return nil
		}, async.Name(stage.signal))
		if r.endsWithin(stage.within, stage.wait) {
			return nil
		}
	}
	r.ended.Resolve(&AbandonedError{
		During: "the server was asked for TERM and KILL, and has not said that the script has ended", MayRun: true,
	})
	r.close() // ends whatever waits for the server, signals that are not sent yet too
	return nil
}

// endsWithin waits for the end of the script.
func (r *running) endsWithin(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_, _ = r.end.Wait(ctx)
	_, _, ended := r.end.Result()
	return ended
}
