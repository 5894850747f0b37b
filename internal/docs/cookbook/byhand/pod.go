package byhand

import (
	"context"
	"errors"
	"time"
)

func WaitForRunning(
	ctx context.Context, phase func(context.Context) (string, error), attempts int, interval time.Duration,
) error {
	type answer struct {
		phase string
		err   error
	}
	for range attempts {
		answers := make(chan answer)
		go func() {
			p, err := phase(ctx)
			answers <- answer{p, err}
		}()
		select {
		case a := <-answers:
			if a.err != nil || a.phase == "Running" {
				return a.err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		time.Sleep(interval)
	}
	return errors.New("timed out waiting for the pod")
}
