package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// Whoever asks who is left changes nothing, at no moment of the life of a service.
func TestToAskWhoIsLeftChangesNothing(t *testing.T) {
	for name, options := range map[string][]async.TaskOption{"plain": nil, "a daemon": {async.Daemon()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				quit := make(chan struct{})
				var m *member
				ask := func(text string) {
					synctest.Wait()
					assert.Equal(t, text, m.runs())
					synctest.Wait()
				}
				ended := make(chan error, 1)
				go func() {
					ended <- Run(ctx, []Service{{
						Name: "worker", Options: options, Drain: func(context.Context) error { return nil },
						Run: func(ctx context.Context) error {
							m = memberOf(ctx)
							async.Go(ctx, func(ctx context.Context) error { <-quit; return ctx.Err() }, async.Name("task"))
							<-quit
							return ctx.Err()
						},
					}})
				}()
				synctest.Wait()
				ask(" (Run, task)")
				stop()
				time.Sleep(time.Second)
				ask(" (Run, task)") // Drain has returned
				close(quit)
				require.NoError(t, <-ended)
				ask("")
			})
		})
	}
}
