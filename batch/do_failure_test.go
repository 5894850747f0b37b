package batch_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/batch"
)

// This file is about flushes with items of Do that fail, and about the end.

func TestAFlushThatFailsIsAnErrorOfDoAndNotOfTheScope(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.fails = 1
		s.slow(time.Second)
		calls := do(ctx, b, 1)
		calls = append(calls, do(ctx, b, 2)...)
		errs := told(ctx, calls)
		assert.True(t, errs[0] == errDisk, "as it is: %v", errs[0])
		assert.NoError(t, errs[1])
		assert.Equal(t, 2*time.Second, time.Since(s.begin), "there is no rest")
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, [][]int{{1}, {2}}, s.calls(), "never in the next flush")
}

func TestAPanicOrGoexitOfFlushIsAnErrorOfDoAndNotOfTheScope(t *testing.T) {
	for name, bad := range map[string]func(context.Context){
		"panic":         func(context.Context) { panic(errDisk) },
		"panic of task": func(ctx context.Context) { async.Go(ctx, func(context.Context) error { panic(errDisk) }) },
		"goexit":        func(context.Context) { runtime.Goexit() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
					first := true
					b := batch.New(ctx, func(ctx context.Context, items []int) error {
						if first {
							first = false
							time.Sleep(time.Second)
							bad(ctx)
						}
						return nil
					})
					errs := told(ctx, do(ctx, b, 1, 2))
					if name == "goexit" {
						assert.ErrorIs(t, errs[0], async.ErrGoexit)
					} else {
						p := new(async.PanicError)
						require.ErrorAs(t, errs[0], &p)
						assert.ErrorIs(t, errs[0], errDisk)
						assert.Contains(t, string(p.Stack), "TestAPanicOrGoexit")
					}
					assert.NoError(t, errs[1], "the batch goes on")
					return nil
				}))
			})
		})
	}
}

// A panic is never lost, nor is Goexit. An error is: its caller was told ErrUnderWay.
func TestAPanicOrGoexitThatNobodyWaitsForFailsTheScope(t *testing.T) {
	for name, bad := range map[string]func() error{
		"panic":  func() error { panic(errDisk) },
		"goexit": func() error { runtime.Goexit(); return nil },
		"error":  func() error { return errDisk },
		"panic that was returned": func() error {
			return &async.PanicError{Value: errDisk}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var err error
				raised := func() (p any) {
					defer func() { p = recover() }()
					err = async.Scope(t.Context(), func(ctx context.Context) error {
						b := batch.New(ctx, func(context.Context, []int) error {
							time.Sleep(time.Minute)
							return bad()
						})
						short, cancel := context.WithTimeout(ctx, time.Second)
						defer cancel()
						assert.ErrorIs(t, b.Do(short, 1), batch.ErrUnderWay)
						return nil
					})
					return nil
				}()
				switch name {
				case "panic":
					p, ok := raised.(*async.PanicError)
					require.True(t, ok)
					assert.Equal(t, errDisk, p.Value)
				case "goexit":
					assert.ErrorIs(t, err, async.ErrGoexit)
				default:
					require.Nil(t, raised)
					assert.NoError(t, err)
				}
			})
		})
	}
}

// One flush has items of both. The error is told to the callers of Do, and to the scope
// because of the items of Add, which come again alone.
func TestAFlushWithItemsOfBothThatFailsIsAnErrorOfBoth(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.fails = 1
		add(t, ctx, b, 1)
		assert.True(t, b.Do(context.WithoutCancel(ctx), 2) == errDisk)
		return nil
	})
	require.Equal(t, errDisk, err)
	assert.Equal(t, [][]int{{1, 2}, {1}}, s.calls())
}

func TestAFlushWithItemsOfBothThatPanicsIsRaisedByTheScopeToo(t *testing.T) {
	for name, bad := range map[string]func() error{
		"panic":    func() error { panic(errDisk) },
		"goexit":   func() error { runtime.Goexit(); return nil },
		"returned": func() error { return &async.PanicError{Value: errDisk} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSink(t)
				var err, answer error
				raised := func() (p any) {
					defer func() { p = recover() }()
					err = async.Scope(t.Context(), func(ctx context.Context) error {
						first := true
						b := batch.New(ctx, func(ctx context.Context, items []int) error {
							if first {
								first = false
								return bad()
							}
							return s.flush(ctx, items)
						})
						add(t, ctx, b, 1)
						answer = b.Do(context.WithoutCancel(ctx), 2)
						return nil
					})
					return nil
				}()
				if name == "goexit" {
					assert.ErrorIs(t, answer, async.ErrGoexit)
					assert.ErrorIs(t, err, async.ErrGoexit)
				} else {
					assert.ErrorAs(t, answer, new(*async.PanicError))
				}
				if p, ok := raised.(*async.PanicError); name == "panic" {
					require.True(t, ok)
					assert.Equal(t, errDisk, p.Value)
				}
				if name == "returned" {
					assert.Nil(t, raised)
					assert.ErrorIs(t, err, errDisk)
				}
				assert.Equal(t, []int{1}, s.delivered())
			})
		})
	}
}

// After a failure of items of Add, which the scope survives, Do waits until the batch has
// rested: for no longer than a second, whatever the Age.
func TestDoWaitsForABatchThatRests(t *testing.T) {
	for _, capacity := range []int{2, 100} {
		synctest.Test(t, func(t *testing.T) {
			s := newSink(t)
			s.fails = 1
			s.slow(time.Second)
			require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
				b := batch.New(ctx, s.flush, batch.Items(2), batch.Age(time.Hour), batch.Capacity(capacity))
				add(t, ctx, b, 1, 2)
				synctest.Wait()
				assert.Equal(t, []error{nil}, told(ctx, do(ctx, b, 3)), "that flush had nothing of it")
				return nil
			}, async.OnFailure(func(error) error { return nil })))
			assert.Equal(t, []int{1, 2, 3}, s.delivered())
			assert.Equal(t, 2*time.Second, s.at[1])
		})
	}
}

func TestDoThatComesWhileTheBatchRestsCutsTheRestShort(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			s.fails = 1
			b := batch.New(ctx, s.flush, batch.Items(1), batch.Age(time.Hour))
			add(t, ctx, b, 1)
			require.NoError(t, async.Sleep(ctx, time.Second/2))
			return b.Do(ctx, 2)
		}, async.OnFailure(func(error) error { return nil }))
	})
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{0, time.Second}, s.at)
	assert.Equal(t, []int{1, 2}, s.delivered())
}

// Callers that are no tasks of the scope may wait when it ends. Each of their items is
// flushed once.
func TestAScopeThatEndsWellFlushesItemsOfDoThatWait(t *testing.T) {
	for name, failing := range map[string]bool{"delivered": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSink(t)
				answers := make(chan error, 2)
				err := async.Scope(t.Context(), func(ctx context.Context) error {
					b := batch.New(ctx, s.flush)
					s.slow(time.Second)
					async.OnExit(ctx, func(context.Context, error) error {
						go func() { answers <- b.Do(context.Background(), 1) }()
						synctest.Wait()
						go func() { answers <- b.Do(context.Background(), 2) }()
						synctest.Wait()
						if failing {
							s.fails = 1
						}
						return nil
					})
					return nil
				})
				require.NoError(t, err, "it is no LostError: its caller was told")
				assert.NoError(t, <-answers)
				if failing {
					assert.Equal(t, errDisk, <-answers)
				} else {
					assert.NoError(t, <-answers)
				}
				assert.Equal(t, [][]int{{1}, {2}}, s.calls())
			})
		})
	}
}

// The last flush may have items of both as well: here because the batch rests.
func TestItemsOfAddOfALastFlushWithItemsOfBothAreLost(t *testing.T) {
	for name, bad := range map[string]func() error{
		"error":  func() error { return errDisk },
		"panic":  func() error { panic(errDisk) },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := make(chan error, 1)
				err := async.Scope(t.Context(), func(ctx context.Context) error {
					b := batch.New(ctx, func(_ context.Context, items []int) error {
						if len(items) > 1 {
							return bad()
						}
						return errors.New("not now")
					}, batch.Items(1))
					add(t, ctx, b, 2)
					synctest.Wait() // and now the batch rests
					go func() { answer <- b.Do(context.Background(), 3) }()
					synctest.Wait()
					return nil
				}, async.OnFailure(func(error) error { return nil }))
				lost := new(batch.LostError[int])
				require.ErrorAs(t, err, &lost)
				assert.Equal(t, []int{2}, lost.Items)
				if name == "goexit" {
					assert.ErrorIs(t, <-answer, async.ErrGoexit)
				} else {
					assert.ErrorIs(t, <-answer, errDisk)
					assert.ErrorIs(t, lost, errDisk)
				}
			})
		})
	}
}

func TestDoAfterTheEndIsRefused(t *testing.T) {
	var b *batch.Batch[int]
	s, err := inScope(t, func(ctx context.Context, inner *batch.Batch[int], s *sink) error {
		b = inner
		return b.Do(ctx, 1)
	})
	require.NoError(t, err)
	assert.ErrorIs(t, b.Do(t.Context(), 2), async.ErrScopeEnded)
	assert.Equal(t, []int{1}, s.delivered())
}

// A call that waits for room when the batch is closed was never in it.
func TestDoThatWaitsForRoomIsToldThatTheBatchIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.fails = 1
		answer := make(chan error, 1)
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Items(1), batch.Capacity(1))
			add(t, ctx, b, 1)
			synctest.Wait()
			go func() { answer <- b.Do(context.Background(), 2) }()
			synctest.Wait()
			return nil
		}, async.OnFailure(func(error) error { return nil })))
		err := <-answer
		assert.ErrorIs(t, err, async.ErrScopeEnded)
		assert.ErrorContains(t, err, "batch: closed")
		assert.Equal(t, []int{1}, s.delivered())
	})
}

// As at Close of a store: its group is stopped, with a reason. Items that no flush has are
// withdrawn. The flush that is under way decides about its own.
func TestDoInABatchThatIsStopped(t *testing.T) {
	for name, answer := range map[string]error{"the flush delivers": nil, "the flush gives up": errDisk} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []int
				g := async.NewGroup(t.Context())
				b := batch.New(g.Context(), func(ctx context.Context, items []int) error {
					<-ctx.Done()
					time.Sleep(time.Second)
					got = append(got, items...)
					return answer
				})
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
					calls := do(ctx, b, 1, 2)
					begin := time.Now()
					stopped := async.Start(ctx, func(ctx context.Context) error { return g.Stop(ctx, errStop) })
					_, err := calls[1].Join(ctx)
					assert.True(t, err == errStop, "the bare cause: %v", err)
					assert.Zero(t, time.Since(begin))
					_, err = calls[0].Join(ctx)
					assert.ErrorIs(t, err, answer)
					assert.Equal(t, time.Second, time.Since(begin))
					_, err = stopped.Join(ctx)
					only := new(async.ScopeError)
					require.ErrorAs(t, err, &only)
					assert.Empty(t, only.Errors, "an item was withdrawn, and nothing failed")
					assert.ErrorIs(t, b.Do(ctx, 3), async.ErrScopeEnded)
					return nil
				}))
				assert.Equal(t, []int{1}, got)
			})
		})
	}
}

// Do of a task that is not cancelled with the scope does not wait for the last flush,
// which waits for the task.
func TestDoInACancelledScopeIsRefusedWithItsCause(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			assert.True(t, b.Do(ctx, 1) == errStop)
			assert.True(t, b.Do(context.WithoutCancel(ctx), 1) == errStop)
			return nil
		})
		return errStop
	})
	require.Equal(t, errStop, err)
	assert.Empty(t, s.calls())
}

// A scope that leaves a flush behind does not leave its callers without an answer.
func TestDoWaitsForAFlushThatWasLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, check := asynctest.Root(t.Context())
		answer := make(chan error, 1)
		left := new(async.StragglerError)
		require.ErrorAs(t, async.Scope(root, func(ctx context.Context) error {
			b := batch.New(ctx, func(context.Context, []int) error {
				time.Sleep(time.Minute)
				return nil
			})
			go func() { answer <- b.Do(context.Background(), 1) }()
			synctest.Wait()
			return errStop
		}, async.DetachAfter(time.Second)), &left)
		assert.NoError(t, <-answer)
		require.NoError(t, check())
	})
}

// Goroutines that are no tasks of the scope and never stop do not keep it from ending.
func TestCallersOfDoThatNeverStopDoNotKeepTheScopeFromEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.slow(time.Millisecond)
		refused := make(chan error, 3)
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush)
			for i := range cap(refused) {
				go func() {
					var err error
					for err == nil {
						err = b.Do(context.Background(), i)
					}
					refused <- err
				}()
			}
			return async.Sleep(ctx, 10*time.Second)
		}))
		for range cap(refused) {
			assert.ErrorIs(t, <-refused, async.ErrScopeEnded)
		}
	})
}

// Stores tell the two apart, for the second they turn into an error of their own.
func TestErrUnderWayIsNotInTheErrorOfAWithdrawnItem(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, async.Scope(t.Context(), func(scope context.Context) error {
		b := batch.New(scope, func(context.Context, []int) error { return nil })
		err := b.Do(ctx, 1)
		assert.Equal(t, context.Canceled, err)
		assert.False(t, errors.Is(err, batch.ErrUnderWay))
		return nil
	}))
}

// A flush whose calls of Do have all been given up panics, and the scope carries on: so does the batch.
func TestABatchGoesOnAfterAPanicThatNobodyHasWaitedFor(t *testing.T) {
	for name, bad := range map[string]func(){"panic": func() { panic("bad row") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
					first := true
					b := batch.New(ctx, func(context.Context, []int) error {
						if first {
							first = false
							time.Sleep(time.Minute)
							bad()
						}
						return nil
					}, batch.Items(1))
					within := func(d time.Duration, call func(ctx context.Context) error) error {
						ctx, cancel := context.WithTimeout(ctx, d)
						defer cancel()
						return call(ctx)
					}
					require.ErrorIs(t, within(time.Second, func(ctx context.Context) error { return b.Do(ctx, 1) }), batch.ErrUnderWay)
					require.NoError(t, async.Sleep(ctx, time.Hour))
					require.NoError(t, within(time.Hour, func(ctx context.Context) error { return b.Do(ctx, 2) }))
					require.NoError(t, b.Add(ctx, 3))
					require.NoError(t, within(time.Hour, b.Flush))
					return nil
				}, async.OnPanic(func(*async.PanicError) error { return nil }), async.OnFailure(func(error) error { return nil })))
			})
		})
	}
}
