package async_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

func awaits[T any](f *async.Future[T]) func(ctx context.Context) error {
	return func(ctx context.Context) error { _, err := f.Await(ctx, 0); return err }
}

// A contender that awaits its own choice, which cannot be decided without it,
// would never come back.
func TestAContenderThatAwaitsItsOwnChoiceIsACycle(t *testing.T) {
	type contest = func(ctx context.Context, tasks ...func(context.Context) (int, error)) (wait func(ctx context.Context) error)
	choices := map[string]contest{
		"Settle": func(ctx context.Context, tasks ...func(context.Context) (int, error)) func(context.Context) error {
			return awaits(async.Settle(ctx, tasks...))
		},
		"All": func(ctx context.Context, tasks ...func(context.Context) (int, error)) func(context.Context) error {
			return awaits(async.All(ctx, tasks...))
		},
		"Race": func(ctx context.Context, tasks ...func(context.Context) (int, error)) func(context.Context) error {
			return awaits(async.Race(ctx, tasks...))
		},
		"Any": func(ctx context.Context, tasks ...func(context.Context) (int, error)) func(context.Context) error {
			return awaits(async.Any(ctx, tasks...))
		},
		"Hedge": func(ctx context.Context, tasks ...func(context.Context) (int, error)) func(context.Context) error {
			return awaits(async.Hedge(ctx, time.Second, tasks...))
		},
		"Quorum": func(ctx context.Context, tasks ...func(context.Context) (int, error)) func(context.Context) error {
			return awaits(async.Quorum(ctx, 1, tasks...))
		},
	}
	for name, contest := range choices {
		all := name == "All" || name == "Settle"
		for way, into := range map[string]func(ctx context.Context, wait func(ctx context.Context) error) error{
			"itself":         func(ctx context.Context, wait func(ctx context.Context) error) error { return wait(ctx) },
			"an inner scope": func(ctx context.Context, wait func(ctx context.Context) error) error { return async.Scope(ctx, wait) },
			"a task of its own": func(ctx context.Context, wait func(ctx context.Context) error) error {
				_, err := async.Start(ctx, wait).Await(ctx, 0)
				return err
			},
			"another context": func(ctx context.Context, wait func(ctx context.Context) error) error {
				ctx, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				return wait(ctx)
			},
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					// The only one left: the other has failed before.
					_ = async.Scope(ctx, func(ctx context.Context) error {
						waits := make(chan func(ctx context.Context) error, 1)
						wait := contest(ctx, func(ctx context.Context) (int, error) {
							if all || name == "Race" { // of which a failure decides
								return 0, nil
							}
							return 0, errContext
						}, func(ctx context.Context) (int, error) {
							wait := <-waits
							if name == "Race" { // decided by then
								return 0, nil
							}
							time.Sleep(time.Minute)
							err := into(ctx, wait)
							require.ErrorIs(t, err, async.ErrAwaitCycle)
							return 0, err
						})
						waits <- wait
						return wait(ctx)
					})
					// Two are left.
					_ = async.Scope(ctx, func(ctx context.Context) error {
						waits := make(chan func(ctx context.Context) error, 1)
						wait := contest(ctx, func(ctx context.Context) (int, error) {
							err := into(ctx, <-waits)
							if all {
								require.ErrorIs(t, err, async.ErrAwaitCycle)
							} else {
								require.NotErrorIs(t, err, async.ErrAwaitCycle, "the other may decide")
							}
							return 0, err
						}, func(ctx context.Context) (int, error) { return 1, async.Sleep(ctx, time.Minute) })
						waits <- wait
						_ = wait(ctx)
						return nil
					})
				})
			})
		}
	}
	t.Run("Race of one", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				ch := make(chan *async.Future[int], 1)
				f := async.Race(ctx, func(ctx context.Context) (int, error) {
					_, err := (<-ch).Await(ctx, 0)
					require.ErrorIs(t, err, async.ErrAwaitCycle)
					return 0, err
				})
				ch <- f
				_, err := f.Await(ctx, 0)
				return err
			})
		})
	})
}

// A ring that leads through a choice and other tasks is found whichever wait
// closes it.
func TestARingThroughAChoiceIsFound(t *testing.T) {
	for _, last := range []string{"contender", "helper"} {
		t.Run(last, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				_ = async.Scope(ctx, func(ctx context.Context) error {
					var all *async.Future[[]int]
					var helper *async.Future[struct{}]
					var errs []error
					ready := make(chan struct{})
					pause := func(who string) {
						<-ready
						if who == last {
							time.Sleep(time.Second)
						}
					}
					helper = async.Start(ctx, func(ctx context.Context) error {
						pause("helper")
						_, err := all.Await(ctx, 0)
						errs = append(errs, err)
						return err
					}, async.Name("helper"))
					all = async.All(ctx, answer, func(ctx context.Context) (int, error) {
						pause("contender")
						_, err := helper.Await(ctx, 0)
						errs = append(errs, err)
						return 0, err
					})
					close(ready)
					_, _ = all.Await(ctx, 0)
					_, _ = helper.Await(ctx, 0)
					require.Len(t, errs, 2)
					for _, err := range errs {
						require.ErrorIs(t, err, async.ErrAwaitCycle)
					}
					return nil
				})
			})
		})
	}
}

// The path of a cycle is one path, in which no task stands twice in a row.
func TestTheTextOfACycleIsOnePath(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			names := []string{"a", "b", "c", "d"}
			futures := make([]*async.Future[struct{}], len(names))
			ready := make(chan struct{})
			for i, name := range names {
				futures[i] = async.Start(ctx, func(ctx context.Context) error {
					<-ready
					time.Sleep(time.Duration(i) * time.Second)
					if name == "b" { // waits in a task of its own
						_, err := async.Start(ctx, func(ctx context.Context) error {
							_, err := futures[i+1].Await(ctx, 0)
							return err
						}, async.Name("part")).Await(ctx, 0)
						return err
					}
					_, err := futures[(i+1)%len(names)].Await(ctx, 0)
					return err
				}, async.Name(name))
			}
			close(ready)
			_, err := futures[3].Join(ctx)
			require.EqualError(t, err, "async: await cycle: d -> a -> b -> part -> c -> d")
			self := make(chan *async.Future[struct{}], 1)
			f := async.Start(ctx, func(ctx context.Context) error { _, err := (<-self).Await(ctx, 0); return err }, async.Name("me"))
			self <- f
			_, err = f.Await(ctx, 0)
			require.EqualError(t, err, "async: await cycle: me -> me")
			return nil
		})
	})
}

// The search goes from both ends in step. Whichever end is long, a ring is found
// and none is imagined.
func TestARingIsFoundAmongManyWaits(t *testing.T) {
	const many = 300
	for _, waiters := range []int{0, many} {
		for _, children := range []int{0, many} {
			for _, ring := range []bool{true, false} {
				t.Run(fmt.Sprint(waiters, " waiters, ", children, " children, a ring: ", ring), func(t *testing.T) {
					inBubble(t, func(t *testing.T, ctx context.Context) {
						_ = async.Scope(ctx, func(ctx context.Context) error {
							var me, busy *async.Future[struct{}]
							ready, stop := make(chan struct{}), make(chan struct{})
							idle := func(ctx context.Context) error {
								_, err := async.Start(ctx, func(context.Context) error { <-stop; return nil }).Wait(ctx)
								return err
							}
							busy = async.Start(ctx, func(ctx context.Context) error {
								<-ready
								for range children {
									async.Start(ctx, idle)
								}
								if ring {
									derived, cancel := context.WithCancel(ctx)
									defer cancel()
									_, err := me.Wait(derived)
									return err
								}
								return idle(ctx)
							}, async.Name("busy"))
							me = async.Start(ctx, func(ctx context.Context) error {
								<-ready
								for range waiters {
									async.Start(ctx, idle)
								}
								time.Sleep(time.Second)
								_, err := busy.Wait(ctx)
								return err
							}, async.Name("me"))
							for range waiters {
								async.Start(ctx, func(ctx context.Context) error { _, err := me.Wait(ctx); return err })
							}
							close(ready)
							time.AfterFunc(time.Minute, func() { close(stop) })
							_, err := me.Wait(ctx)
							if ring {
								require.EqualError(t, err, "async: await cycle: me -> busy -> me")
							} else {
								require.NoError(t, err)
							}
							return nil
						})
					})
				})
			}
		}
	}
}

// Waits that do not block, and waits that are over, are no part of a cycle.
func TestWaitsThatAreOverMakeNoCycle(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			var a *async.Future[struct{}]
			made := make(chan struct{})
			b := async.Start(ctx, func(ctx context.Context) error {
				<-made
				time.Sleep(time.Second)
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				_, err := a.Wait(short) // is over before a waits for b
				require.ErrorIs(t, err, context.DeadlineExceeded)
				time.Sleep(time.Hour)
				return nil
			})
			a = async.Start(ctx, func(ctx context.Context) error {
				time.Sleep(time.Minute)
				_, err := b.Wait(ctx)
				return err
			})
			close(made)
			_, err := a.Join(ctx)
			return err
		}))
	})
}
