package async_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// ledger is values that were opened, and how often each was closed.
type ledger struct {
	mu     sync.Mutex
	opened int
	closed map[int]int
	given  map[int]bool
}

func (l *ledger) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened++
	return l.opened
}

func (l *ledger) close(v int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed == nil {
		l.closed = map[int]int{}
	}
	l.closed[v]++
}

func (l *ledger) give(vs ...int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given == nil {
		l.given = map[int]bool{}
	}
	for _, v := range vs {
		if v != 0 {
			l.given[v] = true
		}
	}
}

// check that every value was given or closed, and none both, nor closed twice.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for v := 1; v <= l.opened; v++ {
		n := l.closed[v]
		if l.given[v] {
			n++
		}
		require.Equal(t, 1, n, "value %d of %d: given %v, closed %d times", v, l.opened, l.given[v], l.closed[v])
	}
	require.Zero(t, l.closed[0], "nothing was closed that was not opened")
}

// dials are tasks that open a value after some seconds and then do something.
var dials = map[string]func(ctx context.Context, l *ledger, after time.Duration) (int, error){
	"well": func(_ context.Context, l *ledger, d time.Duration) (int, error) { time.Sleep(d); return l.open(), nil },
	"heeds ctx": func(ctx context.Context, l *ledger, d time.Duration) (int, error) {
		if err := async.Sleep(ctx, d); err != nil {
			return 0, err
		}
		return l.open(), nil
	},
	"beside a child's echo": func(ctx context.Context, l *ledger, d time.Duration) (int, error) {
		async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, d) })
		time.Sleep(d)
		return l.open(), nil
	},
	"beside a child's failure": func(ctx context.Context, l *ledger, d time.Duration) (int, error) {
		async.Go(ctx, func(context.Context) error { time.Sleep(d); return errItem })
		time.Sleep(d)
		return l.open(), nil
	},
	"fails": func(_ context.Context, _ *ledger, d time.Duration) (int, error) { time.Sleep(d); return 0, errItem },
}

// waits are what becomes of the future of a choice.
var waits = map[string]func(ctx context.Context, l *ledger, f func() ([]int, error), expire func(time.Duration), cancel func()){
	"awaited": func(_ context.Context, l *ledger, f func() ([]int, error), _ func(time.Duration), _ func()) {
		vs, _ := f()
		l.give(vs...)
	},
	"awaited late": func(_ context.Context, l *ledger, f func() ([]int, error), _ func(time.Duration), _ func()) {
		time.Sleep(time.Minute)
		vs, _ := f()
		l.give(vs...)
	},
	"never awaited": func(context.Context, *ledger, func() ([]int, error), func(time.Duration), func()) {},
	"expired": func(_ context.Context, _ *ledger, _ func() ([]int, error), expire func(time.Duration), _ func()) {
		expire(time.Second / 2)
	},
	"expired, asked": func(_ context.Context, l *ledger, f func() ([]int, error), expire func(time.Duration), _ func()) {
		expire(time.Second / 2)
		vs, _ := f()
		l.give(vs...)
	},
	"cancelled": func(_ context.Context, _ *ledger, _ func() ([]int, error), _ func(time.Duration), cancel func()) {
		cancel()
	},
	"decided, cancel": func(_ context.Context, _ *ledger, _ func() ([]int, error), _ func(time.Duration), cancel func()) {
		time.Sleep(time.Minute)
		cancel()
	},
}

// choices are all ways to choose. Each returns how the future is waited for.
var choices = map[string]func(ctx context.Context, tasks ...func(context.Context) (int, error)) (f func() ([]int, error), expire func(time.Duration), cancel func()){
	"Race": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		return one(ctx, async.Race(ctx, tasks...))
	},
	"Any": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		return one(ctx, async.Any(ctx, tasks...))
	},
	"Hedge": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		return one(ctx, async.Hedge(ctx, 300*time.Millisecond, tasks...))
	},
	"Until": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		return one(ctx, async.Until(ctx, func(r async.Result[int]) bool { return r.Index == 1 }, tasks...))
	},
	"nobody": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		return one(ctx, async.Until(ctx, func(async.Result[int]) bool { return false }, tasks...))
	},
	"Quorum": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		f := async.Quorum(ctx, 2, tasks...)
		return func() ([]int, error) { return f.Await(ctx, 0) }, func(d time.Duration) { _, _ = f.Await(ctx, d) }, func() { f.Cancel(errCancelBoom) }
	},
	"All": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		f := async.All(ctx, tasks...)
		return func() ([]int, error) { return f.Await(ctx, 0) }, func(d time.Duration) { _, _ = f.Await(ctx, d) }, func() { f.Cancel(errCancelBoom) }
	},
	"Settle": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		f := async.Settle(ctx, tasks...)
		return func() (vs []int, err error) {
			results, err := f.Await(ctx, 0)
			for _, r := range results {
				vs = append(vs, r.Value)
			}
			return vs, err
		}, func(d time.Duration) { _, _ = f.Await(ctx, d) }, func() { f.Cancel(errCancelBoom) }
	},
}

func one(ctx context.Context, f *async.Future[int]) (func() ([]int, error), func(time.Duration), func()) {
	return func() ([]int, error) { v, err := f.Await(ctx, 0); return []int{v}, err }, func(d time.Duration) { _, _ = f.Await(ctx, d) }, func() { f.Cancel(errCancelBoom) }
}

// TestEveryValueOfAChoiceIsGivenOrDiscarded, once, whatever the contenders do
// and whoever asks.
func TestEveryValueOfAChoiceIsGivenOrDiscarded(t *testing.T) {
	for choosing, choose := range choices {
		for first, a := range dials {
			for second, b := range dials {
				for waiting, wait := range waits {
					t.Run(fmt.Sprint(choosing, "/", first, "/", second, "/", waiting), func(t *testing.T) {
						inBubble(t, func(t *testing.T, ctx context.Context) {
							var l ledger
							_ = panicOrError(func() error {
								return async.Scope(ctx, func(ctx context.Context) error {
									f, expire, cancel := choose(ctx, async.Discarding(l.close,
										func(ctx context.Context) (int, error) { return a(ctx, &l, time.Second) },
										func(ctx context.Context) (int, error) { return b(ctx, &l, 2*time.Second) },
										func(ctx context.Context) (int, error) { return a(ctx, &l, 3*time.Second) },
									)...)
									wait(ctx, &l, f, expire, cancel)
									return nil
								})
							})
							l.check(t)
						})
					})
				}
			}
		}
	}
}

// TestErrorsOfLosersAreDropped with what they started joined.
func TestErrorsOfLosersAreDropped(t *testing.T) {
	eachRace(t, races, func(t *testing.T, ctx context.Context, race func(context.Context, ...contender) *async.Future[int]) {
		joined := false
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			v, err := race(ctx, after(time.Second, 1, nil), func(ctx context.Context) (int, error) {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Hour); joined = true; return errRace })
				<-ctx.Done()
				return 0, errRace
			}).Await(ctx, 0)
			require.NoError(t, err)
			require.Equal(t, 1, v)
			return nil
		}))
		require.True(t, joined)
	})
}

// TestValuesThatNobodyIsGivenAreDiscardedOnce counts connections.
func TestValuesThatNobodyIsGivenAreDiscardedOnce(t *testing.T) {
	whenStopped := func(v int) contender { return func(ctx context.Context) (int, error) { <-ctx.Done(); return v, nil } }
	at := func(s, v int) contender {
		return func(context.Context) (int, error) { time.Sleep(time.Duration(s) * time.Second); return v, nil }
	}
	fails := func(s int) contender {
		return func(context.Context) (int, error) { time.Sleep(time.Duration(s) * time.Second); return 0, errRace }
	}
	for name, test := range map[string]struct {
		run  func(ctx context.Context, w func(...contender) []contender) []int // what was given
		want []int                                                             // what was discarded
	}{
		"Race": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.Race(ctx, w(at(1, 1), whenStopped(2), at(3, 3), fails(2))...).Await(ctx, 0)
			return []int{v}
		}, []int{2, 3}},
		"Any, some failing": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.Any(ctx, w(fails(1), at(2, 2), whenStopped(3))...).Await(ctx, 0)
			return []int{v}
		}, []int{3}},
		"Quorum": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.Quorum(ctx, 2, w(at(1, 1), at(2, 2), at(3, 3), whenStopped(4))...).Await(ctx, 0)
			return v
		}, []int{3, 4}},
		"Quorum that fails": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.Quorum(ctx, 3, w(at(1, 1), fails(2), fails(3), whenStopped(4), fails(4))...).Await(ctx, 0)
			return v
		}, []int{1, 4}},
		"All that fails": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.All(ctx, w(at(1, 1), fails(2), at(3, 3))...).Await(ctx, 0)
			return v
		}, []int{1, 3}},
		"All": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.All(ctx, w(at(1, 1), at(3, 3))...).Await(ctx, 0)
			return v
		}, nil},
		"Until": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.Until(ctx, func(r async.Result[int]) bool { return r.Value == 2 }, w(at(1, 1), at(2, 2), at(3, 3))...).Await(ctx, 0)
			return []int{v}
		}, []int{1, 3}},
		"Until without a winner": {func(ctx context.Context, w func(...contender) []contender) []int {
			_, _ = async.Until(ctx, func(r async.Result[int]) bool { return false }, w(at(1, 1), at(2, 2))...).Await(ctx, 0)
			return nil
		}, []int{1, 2}},
		"Hedge": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.Hedge(ctx, time.Second, w(at(9, 1), at(9, 3), at(1, 2))...).Await(ctx, 0)
			return []int{v}
		}, []int{1, 3}},
		"a winner after an expiry was told": {func(ctx context.Context, w func(...contender) []contender) []int {
			f := async.Race(ctx, w(at(5, 1), at(6, 2))...)
			_, told := f.Await(ctx, time.Second)
			_, err := f.Await(ctx, 0)
			if !errors.Is(err, told) {
				panic(err)
			}
			return nil
		}, []int{1, 2}},
		"a quorum after an expiry was told": {func(ctx context.Context, w func(...contender) []contender) []int {
			f := async.Quorum(ctx, 2, w(at(5, 1), at(6, 2), at(7, 3))...)
			_, _ = f.Await(ctx, time.Second)
			_, _ = f.Await(ctx, 0)
			return nil
		}, []int{1, 2, 3}},
		"Settle keeps all": {func(ctx context.Context, w func(...contender) []contender) []int {
			r, _ := async.Settle(ctx, w(at(5, 1), at(6, 2))...).Await(ctx, 0)
			return []int{r[0].Value, r[1].Value}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var mu sync.Mutex
				var discarded []int
				wrap := func(tasks ...contender) []contender {
					return async.Discarding(func(v int) {
						mu.Lock()
						defer mu.Unlock()
						discarded = append(discarded, v)
					}, tasks...)
				}
				var given []int
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error { given = test.run(ctx, wrap); return nil }))
				require.ElementsMatch(t, test.want, discarded)
				for _, v := range given {
					require.NotContains(t, discarded, v)
				}
			})
		})
	}
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

// Contenders that were told to stop have something to say, all of them: nothing of it is lost.
func TestAChoiceThatIsStoppedTellsWhatAllContendersSay(t *testing.T) {
	for name, choose := range map[string]func(ctx context.Context, tasks ...func(context.Context) (int, error)) error{
		"Any": func(ctx context.Context, tasks ...func(context.Context) (int, error)) error {
			_, err := async.Any(ctx, tasks...).Join(ctx)
			return err
		},
		"Hedge": func(ctx context.Context, tasks ...func(context.Context) (int, error)) error {
			_, err := async.Hedge(ctx, 0, tasks...).Join(ctx)
			return err
		},
		"Settle": func(ctx context.Context, tasks ...func(context.Context) (int, error)) error {
			async.Settle(ctx, tasks...)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				stop, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(time.Second, func() { cancel(errPlanted) })
				say := func(text string) func(context.Context) (int, error) {
					return func(ctx context.Context) (int, error) {
						<-ctx.Done()
						return 0, fmt.Errorf("%s: %w", text, context.Cause(ctx))
					}
				}
				err := async.Scope(stop, func(ctx context.Context) error {
					return choose(ctx, say("12 rows of A were not written"), say("7 rows of B were not written"))
				})
				require.ErrorIs(t, err, errPlanted)
				assert.Contains(t, err.Error(), "12 rows of A")
				assert.Contains(t, err.Error(), "7 rows of B")
			})
		})
	}
}
