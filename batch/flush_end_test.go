package batch_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
)

// This file is about calls of Flush beside the end of the batch.

// A gatedCtx calls asked whenever it is asked for a value.
type gatedCtx struct {
	context.Context
	asked func()
}

func (c gatedCtx) Value(key any) any {
	c.asked()
	return c.Context.Value(key)
}

// The scope ends, and delivers the rest, after Flush has seen that something is to be
// delivered and before it waits for that.
func TestFlushThatFindsTheBatchEndedSaysWhetherAllWasDelivered(t *testing.T) {
	for name, failed := range map[string]error{"all was": nil, "it was lost": errDisk} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				armed, end := false, make(chan struct{})
				made := make(chan *batch.Batch[int], 1)
				ended := async.Start(t.Context(), func(ctx context.Context) error {
					gated := gatedCtx{ctx, func() {
						if armed {
							armed = false
							close(end)
							synctest.Wait()
						}
					}}
					b := batch.New(gated, func(context.Context, []int) error { return failed })
					add(t, ctx, b, 1)
					made <- b
					<-end
					return nil
				})
				b := <-made
				synctest.Wait()
				armed = true
				err := b.Flush(t.Context())
				_, scope := ended.Wait(t.Context())
				assert.ErrorIs(t, scope, failed)
				if failed == nil {
					assert.NoError(t, err)
				} else {
					assert.ErrorIs(t, err, async.ErrScopeEnded)
				}
			})
		})
	}
}

// A doneCtx calls asked when it is asked why it is done.
type doneCtx struct {
	context.Context
	asked func()
}

func (c doneCtx) Err() error {
	err := c.Context.Err()
	if err != nil {
		c.asked()
	}
	return err
}

// The wait has been cut short, and the items are delivered before Flush looks what has
// become of them.
func TestFlushThatIsCutShortSaysWhatHasBecomeOfItsItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done, cancel := context.WithCancel(t.Context())
		deliver := make(chan struct{})
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, func(context.Context, []int) error {
				<-deliver
				return nil
			})
			add(t, ctx, b, 1)
			asked := false
			flushed := async.Start(ctx, func(context.Context) error {
				return b.Flush(doneCtx{done, func() {
					if !asked {
						asked = true
						close(deliver)
						synctest.Wait()
					}
				}})
			})
			synctest.Wait()
			cancel()
			_, err := flushed.Join(ctx)
			assert.True(t, asked)
			assert.NoError(t, err)
			return nil
		}))
	})
}
