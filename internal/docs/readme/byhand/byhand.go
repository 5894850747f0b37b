// Package byhand has code as people write it without ambit, with the faults that README.md tells of.
package byhand

import (
	"context"
	"errors"
	"time"
)

var errTooSlow = errors.New("too slow")

// LoadAll loads files, all at the same time.
func LoadAll(ctx context.Context, files []string, load func(context.Context, string) error) error {
	errs := make(chan error)
	for _, f := range files {
		go func() { errs <- load(ctx, f) }()
	}
	for range files {
		if err := <-errs; err != nil {
			return err // the others stay at errs <- for ever
		}
	}
	return nil
}

// RunStep runs a step of a pipeline, for at most d.
func RunStep(ctx context.Context, step func(context.Context) error, d time.Duration) error {
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		defer func() { _ = recover() }() // one step is not to end the program
		ended <- step(ctx)
	}()
	select {
	case err := <-ended:
		return err // nil if it has panicked: the pipeline is green
	case <-time.After(d):
		return errTooSlow // it runs on, in a workspace that is about to go
	}
}
