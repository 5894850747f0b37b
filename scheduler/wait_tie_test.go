package scheduler_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/scheduler"
)

// A tiedCtx is done when somebody asks for Done, at once with what asked brings about.
type tiedCtx struct {
	context.Context
	asked func()
}

func (c tiedCtx) Done() <-chan struct{} {
	c.asked()
	return c.Context.Done()
}

// A drain that has ended when ctx is done has not been cut short, as of a future. Chance would
// decide otherwise, so this asks often.
func TestWhatHasEndedWhenCtxIsDoneWasNotCutShort(t *testing.T) {
	for name, wait := range map[string]func(s *scheduler.Scheduler, w *scheduler.ExecutorWorker, ctx context.Context) error{
		"Wait": func(_ *scheduler.Scheduler, w *scheduler.ExecutorWorker, ctx context.Context) error {
			return w.Wait(ctx)
		},
		"Drain": func(_ *scheduler.Scheduler, w *scheduler.ExecutorWorker, ctx context.Context) error {
			return w.Drain(ctx)
		},
		"Drain of all": func(s *scheduler.Scheduler, _ *scheduler.ExecutorWorker, ctx context.Context) error {
			return s.Drain(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 40 {
				synctest.Test(t, func(t *testing.T) {
					s := scheduler.New(scheduler.Goroutines())
					w := s.NewWorker(context.Background())
					end := make(chan struct{})
					require.NoError(t, w.Post(func() { <-end }))
					ctx, cancel := context.WithCancel(context.Background())
					asked := false
					require.NoError(t, wait(s, w, tiedCtx{ctx, func() {
						if !asked {
							asked = true
							close(end)
							synctest.Wait()
							cancel()
						}
					}}))
					require.NoError(t, w.Close())
				})
			}
		})
	}
}
