package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestAnObserverThatPanicsOrExitsIsAnErrorOfTheScope(t *testing.T) {
	for name, tc := range map[string]struct {
		bang func()
		want error
	}{"panic": {plantedPanic, errPlanted}, "Goexit": {runtime.Goexit, async.ErrGoexit}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ran := false
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { ran = true; return nil })
					return nil
				}, async.Observe(async.ObserverFunc(func(async.Event) { tc.bang() })))
				require.ErrorIs(t, err, tc.want)
				require.True(t, ran)
			})
		})
	}
}

func TestASlowObserverHoldsUpNoCancellation(t *testing.T) {
	for _, slow := range []async.EventKind{async.EventPanic, async.EventEnd} {
		t.Run(slow.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				start := time.Now()
				err := panicOrError(func() error {
					return async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); tookAbout(t, 0, start); return nil })
						async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
						return nil
					}, async.Observe(async.ObserverFunc(func(e async.Event) {
						if e.Kind == slow {
							time.Sleep(2 * time.Second)
						}
					})))
				})
				require.ErrorIs(t, err, errPlanted)
			})
		})
	}
}

func TestAPanicIsTheCauseThoughItsObserverIsSlow(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var cause error
		_ = panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.OnExit(ctx, func(context.Context, error) error { cause = context.Cause(ctx); return nil })
				async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return io.EOF })
				return nil
			}, async.Observe(async.ObserverFunc(func(e async.Event) {
				if e.Kind == async.EventPanic {
					time.Sleep(5 * time.Second)
				}
			})))
		})
		require.ErrorIs(t, cause, errPlanted)
	})
}

func TestObserversHearOfAPanicOnce(t *testing.T) {
	for name, body := range map[string]func(ctx context.Context) error{
		"of a future": func(ctx context.Context) error {
			<-async.Start(ctx, func(context.Context) error { plantedPanic(); return nil }).Done()
			return nil
		},
		"that passes through scopes": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var heard atomic.Int32
			ctx := asynctest.Context(t)
			require.ErrorIs(t, panicOrError(func() error {
				return async.Scope(ctx, body, async.Observe(async.ObserverFunc(func(e async.Event) {
					if e.Kind == async.EventPanic {
						heard.Add(1)
					}
				})))
			}), errPlanted)
			require.EqualValues(t, 1, heard.Load())
		})
	}
}

func TestANilObserverPanicsAtTheCall(t *testing.T) {
	require.Panics(t, func() { async.Observe(nil) })
	require.Panics(t, func() { async.Observe(async.ObserverFunc(nil)) })
}

func TestObserversSeeStartsEndsAndPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var inner, outer []string
		note := func(to *[]string) async.Observer {
			return async.ObserverFunc(func(e async.Event) {
				*to = append(*to, fmt.Sprint(e.Task, " ", e.Kind, " ", e.Duration, " ", e.Cause))
			})
		}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				f := async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, async.Name("task"))
				time.Sleep(time.Second)
				f.Cancel(errPlanted)
				return nil
			}, async.Observe(note(&inner)), async.Name("inner"))
		}, async.Observe(note(&outer))))
		require.Equal(t, []string{"task start 0s <nil>", "task end 1s planted"}, inner)
		require.Equal(t, []string{"inner start 0s <nil>", "task start 0s <nil>", "task end 1s planted", "inner end 1s <nil>"}, outer)
	})
}

// TestObserversAreToldOfAPanicThatDoesNotCount, once, and of how the task ended.
func TestObserversAreToldOfAPanicThatDoesNotCount(t *testing.T) {
	for name, answer := range map[string]error{"nil": nil, "another": io.EOF} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var told []string
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, plantPanic, async.Name("bad"))
					return nil
				}, async.OnPanic(func(*async.PanicError) error { return answer }), async.Observe(async.ObserverFunc(func(e async.Event) {
					told = append(told, fmt.Sprint(e.Kind, " ", e.Task, " ", errors.Is(e.Err, errPlanted)))
				})))
				require.Equal(t, answer, err)
				require.Equal(t, []string{"start bad false", "panic bad true", "end bad true"}, told)
			})
		})
	}
}

type spawning struct{}

func (spawning) Execute(task func()) error { go task(); return nil }

func saveReport(context.Context) error { return errors.New("disk full") }

// mistakes are made with a ctx that has a root and no scope. Each returns what is
// seen of it: the text of an error or panic, or what an observer was told.
var mistakes = map[string]struct {
	make func(ctx context.Context) (seen string)
	see  []string // in it, in this order
	not  string   // not in it
}{
	"Go without a scope": {
		make: func(context.Context) string {
			return fmt.Sprint(panicFrom(func() { async.Go(context.Background(), saveReport) }))
		},
		see: []string{"Go on a context without a scope", "async.Scope", "async.Detach", "asynctest.Context"},
	},
	"Go in a scope that has ended": {
		make: func(ctx context.Context) string {
			ctx = endedScope(ctx, async.Name("deploy"))
			return fmt.Sprint(panicFrom(func() { async.Go(ctx, saveReport) }))
		},
		see: []string{"scope has ended", "deploy"},
	},
	"Go in a scope without a name that has ended": {
		make: func(ctx context.Context) string {
			ctx = endedScope(ctx)
			return fmt.Sprint(panicFrom(func() { async.Go(ctx, saveReport) }))
		},
		see: []string{"scope has ended", "async.Name"},
	},
	"Go with the ctx of a task that has ended": {
		make: func(ctx context.Context) (seen string) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				var stored context.Context
				_, _ = async.Start(ctx, func(ctx context.Context) error { stored = ctx; return nil }, async.Name("build")).Await(ctx, 0)
				seen = fmt.Sprint(panicFrom(func() { async.Go(stored, saveReport) }))
				return nil
			}, async.Name("deploy"))
			return seen
		},
		see: []string{"scope has ended", "build"},
	},
	"Execute in a scope that has ended": {
		make: func(ctx context.Context) string {
			ended := endedScope(ctx, async.Name("deploy"))
			_, err := async.Execute(ended, giveOne).Await(ctx, 0)
			return err.Error()
		},
		see: []string{"scope has ended", "deploy"},
	},
	"Scope in a scope that has ended": {
		make: func(ctx context.Context) string {
			return async.Scope(endedScope(ctx, async.Name("deploy")), nothing).Error()
		},
		see: []string{"scope has ended", "deploy"},
	},
	"a forgotten Await": {
		make: func(ctx context.Context) string {
			return async.Scope(ctx, func(ctx context.Context) error { async.Start(ctx, saveReport); return nil }).Error()
		},
		see: []string{"saveReport: nobody awaited it: disk full"},
	},
	"a forgotten Await, outside of all scopes": {
		make: func(ctx context.Context) string {
			ctx, check := asynctest.Root(ctx)
			async.Start(ctx, saveReport)
			synctest.Wait()
			return lostError(check).Error()
		},
		see: []string{"saveReport", "disk full"},
	},
	"two that await with different limits": {
		make: func(ctx context.Context) (seen string) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				f := async.Start(ctx, joinUntilDone, async.Name("fetch"))
				async.Go(ctx, func(ctx context.Context) error { _, _ = f.Await(ctx, 20*time.Millisecond); return nil })
				_, err := f.Await(ctx, time.Second)
				seen = err.Error()
				return nil
			})
			return seen
		},
		see: []string{"fetch", "limit 20ms of an Await"},
	},
	// It was started in the inner scope's body, and is a task of the outer one. The
	// error of a scope with one failed Go task is that failure, as its callers compare
	// it: only an observer is told of which task it is, and in which scope.
	"Go with the ctx of the outer scope in an inner one": {
		make: func(ctx context.Context) string {
			return observed(func(o async.ScopeOption) {
				_ = async.Scope(ctx, func(outer context.Context) error {
					return async.Scope(outer, func(context.Context) error {
						async.Go(outer, saveReport)
						return nil
					}, async.Name("inner"))
				}, async.Name("outer"), o)
			})
		},
		see: []string{"outer/", "saveReport", "disk full"},
		not: "inner/",
	},
	"Start with the ctx of the outer scope in an inner one": {
		make: func(ctx context.Context) string {
			return async.Scope(ctx, func(outer context.Context) error {
				return async.Scope(outer, func(context.Context) error {
					async.Start(outer, saveReport)
					return nil
				}, async.Name("inner"))
			}, async.Name("outer")).Error()
		},
		see: []string{"outer/", "saveReport: nobody awaited it: disk full"},
		not: "inner/",
	},
	"two that await each other": {
		make: func(ctx context.Context) string { return awaitNext(ctx, 2) },
		see:  []string{"await cycle: ", "0 -> 1 -> 0"},
		not:  "\n", // told once
	},
	"a task that awaits what it is part of": {
		make: func(ctx context.Context) string {
			made := make(chan *async.Future[struct{}], 1)
			f := async.Start(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { _, err := (<-made).Await(ctx, 0); return err }, async.Name("part"))
				return nil
			}, async.Name("whole"))
			made <- f
			_, err := f.Await(ctx, 0)
			return err.Error()
		},
		see: []string{"await cycle: part -> whole -> part"},
		not: "\n",
	},
	"a task that blocks for ever, without OnStall": {
		make: func(ctx context.Context) (seen string) { return blocksForEver(ctx, time.Minute) },
		see:  []string{"after being told to stop", "reads a pipe", "chan receive", "blocksForEver"},
	},
	"a task that blocks for ever, and a Shutdown without a deadline": {
		make: func(ctx context.Context) (seen string) { return blocksForEver(ctx, 0) },
		see:  []string{"not told to stop", "reads a pipe", "chan receive", "blocksForEver"},
	},
}

// TestWhatIsSeenOfAMistakeLeadsToItsCause for each of the mistakes.
func TestWhatIsSeenOfAMistakeLeadsToItsCause(t *testing.T) {
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, check := asynctest.Root(t.Context())
				seen := m.make(ctx)
				rest := seen
				for _, want := range m.see {
					_, after, found := strings.Cut(rest, want)
					require.True(t, found, "%q is not in %q, or not in order", want, seen)
					rest = after
				}
				if m.not != "" {
					require.NotContains(t, seen, m.not)
				}
				require.NoError(t, check())
			})
		})
	}
}

// endedScope returns the ctx of a scope that has ended.
func endedScope(ctx context.Context, opts ...async.ScopeOption) (ended context.Context) {
	_ = async.Scope(ctx, func(ctx context.Context) error { ended = ctx; return nil }, opts...)
	return ended
}

// observed returns what an observer is told of ends, one a line.
func observed(open func(o async.ScopeOption)) string {
	lines := make(chan string, 10)
	open(async.Observe(async.ObserverFunc(func(e async.Event) {
		if e.Kind == async.EventEnd {
			lines <- fmt.Sprint(e.Task, ": ", e.Err)
		}
	})))
	close(lines)
	return strings.Join(slices.Collect(func(yield func(string) bool) {
		for line := range lines {
			yield(line)
		}
	}), "\n")
}

// awaitNext returns the error of a scope with n tasks, each of which awaits the
// next, and the last the first. The cycle may be entered anywhere; the text
// begins with task 0.
func awaitNext(ctx context.Context, n int) string {
	err := async.Scope(ctx, func(ctx context.Context) error {
		futures := make([]*async.Future[struct{}], n)
		ready := make(chan struct{})
		for i := range futures {
			futures[i] = async.Start(ctx, func(ctx context.Context) error {
				<-ready
				_, err := futures[(i+1)%n].Await(ctx, 0)
				return err
			}, async.Name(fmt.Sprint(i)))
		}
		close(ready)
		return nil
	})
	var forgotten *async.UnawaitedError
	if !errors.As(err, &forgotten) { // the last of the cycle to end is awaited by nobody
		return err.Error()
	}
	head, path, _ := strings.Cut(forgotten.Err.Error(), "cycle: ")
	way := strings.Split(path, " -> ")
	if i := slices.Index(way, "0"); i > 0 {
		way = slices.Concat(way[i:], way[1:i], []string{"0"})
	}
	return head + "cycle: " + strings.Join(way, " -> ")
}

// TestACycleIsToldOnce however many of its waits see it at the same time.
func TestACycleIsToldOnce(t *testing.T) {
	for n, want := range map[int]string{2: "0 -> 1 -> 0", 3: "0 -> 1 -> 2 -> 0", 5: "0 -> 1 -> 2 -> 3 -> 4 -> 0"} {
		for range 200 {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.Equal(t, "async: await cycle: "+want, awaitNext(ctx, n))
			})
		}
	}
}

// lostError returns what check says once a future has been collected.
func lostError(check func() error) (err error) {
	if !collected(func() bool { err = check(); return err != nil }) {
		return errors.New("nothing was lost")
	}
	return err
}

// blocksForEver returns what Shutdown says of a scope with a task that does not
// come back before Shutdown has. Its ctx has a deadline if limit is not 0.
func blocksForEver(ctx context.Context, limit time.Duration) string {
	pipe := make(chan struct{})
	go func() {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { <-pipe; return nil }, async.Name("reads a pipe"))
			return nil
		}, async.Name("server"))
	}()
	synctest.Wait()
	defer synctest.Wait()
	defer close(pipe)
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return fmt.Sprint(async.Shutdown(ctx))
}

// stopsWith returns a handler that returns err when it is told to stop.
func stopsWith(err error) func(ctx context.Context) error {
	return func(ctx context.Context) error { <-ctx.Done(); return err }
}

// TestWhatBackgroundStartsIsOnRecord: a task that is started in a scope with a
// Background ctx runs on when the scope has ended. The root of the process names
// it, and prints its error if nobody awaits it. It runs itself as another
// process, as Shutdown of that root is for good.
func TestWhatBackgroundStartsIsOnRecord(t *testing.T) {
	if os.Getenv("AMBIT_TEST_BACKGROUND") != "" {
		stop := make(chan struct{})
		err := async.Scope(context.Background(), func(context.Context) error {
			async.Start(context.Background(), func(context.Context) error { <-stop; return errors.New("disk full") }, async.Name("upload"))
			return nil
		})
		fmt.Println("scope:", err)
		fmt.Println("live:", asynctest.Live(context.Background()))
		brief, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		fmt.Println("shutdown:", async.Shutdown(brief))
		close(stop)
		fmt.Println("printed:", firstPrinted())
		os.Exit(0)
	}
	out, err := runSelf(t, "AMBIT_TEST_BACKGROUND=1")
	require.NoError(t, err, out)
	require.Contains(t, out, "scope: <nil>\nlive: [upload]\n")
	require.Contains(t, out, "shutdown: async: root: 1 task still running after being told to stop: shutting down\n\tupload (aborting)")
	require.Contains(t, out, "printed: async: nobody was given this error: upload: ")
	require.Contains(t, out, "disk full")
}

// firstPrinted returns what is printed next to stderr. An error that nobody was
// given is printed when its future is collected.
func firstPrinted() string {
	r, w, err := os.Pipe()
	if err != nil {
		return err.Error()
	}
	os.Stderr = w
	go func() {
		for {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
	}()
	printed := make([]byte, 1000)
	n, _ := r.Read(printed)
	return string(printed[:n])
}
