package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/bench/internal/measure"
	"github.com/ambit-go/ambit/jobqueue"
	"github.com/ambit-go/ambit/scheduler"
)

// A growing operation does n units, or goes n levels deep, and returns the
// processor time that it took and for how many units that was.
type growing struct {
	name string
	deep bool // goes to 10,000 and not to 100,000
	do   func(n int) (time.Duration, int)
}

var errStopped = errors.New("stopped")

// growthRows is B14. A panic through nested scopes is not among them: what it costs is the runtime's.
func growthRows(cfg config) (rows []measure.Row) {
	for _, g := range append(wide, depths()...) {
		many, text := 100_000, "100,000"
		if g.deep {
			many, text = 10_000, "10,000"
		}
		row := grown(g.do, 1000, many, min(cfg.rounds, 11))
		row.ID, row.What, row.Peer, row.Budget = "B14", g.name+", "+text, "1,000", measure.AtMost(3)
		rows = append(rows, row)
	}
	return rows
}

var wide = []growing{
	{name: "Go", do: levels(func(n int) { scoped(func(ctx context.Context) { repeatGo(ctx, n) }) })},
	{name: "Execute, AwaitAll", do: levels(func(n int) {
		scoped(func(ctx context.Context) {
			futures := make([]*async.Future[int], n)
			for i := range futures {
				futures[i] = async.Execute(ctx, answer)
			}
			async.AwaitAll(ctx, 0, futures...)
		})
	})},
	{name: "tasks that queue for Limit(2)", do: levels(func(n int) {
		must(async.Scope(context.Background(), func(ctx context.Context) error { repeatGo(ctx, n); return nil }, async.Limit(2)))
	})},
	{name: "waiters of one future", do: levels(func(n int) {
		scoped(func(ctx context.Context) {
			f, p := async.NewPromise[int](ctx)
			var started sync.WaitGroup
			started.Add(n)
			for range n {
				async.Go(ctx, func(ctx context.Context) error { started.Done(); _, err := f.Await(ctx, 0); return err })
			}
			started.Wait()
			p.Resolve(1)
		})
	})},
	{name: "Await of a busy task that so many await", do: awaitAmong},
	{name: "daemons", do: levels(func(n int) {
		scoped(func(ctx context.Context) {
			for range n {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, async.Daemon())
			}
		})
	})},
	{name: "cancelling parked tasks", do: cancelling(func(ctx context.Context) error { <-ctx.Done(); return nil })},
	{name: "cancelling tasks in Sleep", do: cancelling(func(ctx context.Context) error { _ = async.Sleep(ctx, time.Hour); return nil })},
	{name: "promises", do: levels(func(n int) {
		scoped(func(ctx context.Context) {
			for i := range n {
				f, p := async.NewPromise[int](ctx)
				p.Resolve(i)
				_, err := f.Await(ctx, 0)
				must(err)
			}
		})
	})},
	{name: "promises left unresolved", do: levels(func(n int) {
		scoped(func(ctx context.Context) {
			for range n {
				async.NewPromise[int](ctx)
			}
		})
	})},
	{name: "exit hooks", do: levels(func(n int) {
		scoped(func(ctx context.Context) {
			for range n {
				async.OnExit(ctx, func(context.Context, error) error { return nil })
			}
		})
	})},
	{name: "failures that nobody was given", do: levels(func(n int) {
		_ = async.Scope(context.Background(), func(ctx context.Context) error {
			for range n {
				async.Start(ctx, func(context.Context) error { return errStopped })
			}
			return nil
		})
	})},
	{name: "panicking futures, then given", deep: true, do: func(n int) (spent time.Duration, units int) {
		scoped(func(ctx context.Context) {
			futures := make([]*async.Future[struct{}], n)
			for i := range futures {
				futures[i] = async.Start(ctx, func(context.Context) error { panic(errStopped) })
			}
			for _, f := range futures {
				<-f.Done()
			}
			start := cpu()
			async.AwaitAll(ctx, 0, futures...)
			spent = cpu() - start
		})
		return spent, n
	}},
	{name: "Limit(1): so many come back from Wait, cancelled", do: comeBack},
	{name: "Race among so many", do: levels(func(n int) {
		scoped(func(ctx context.Context) {
			tasks := make([]func(context.Context) (int, error), n)
			for i := range tasks {
				tasks[i] = answer
			}
			_, err := async.Race(ctx, tasks...).Await(ctx, 0)
			must(err)
		})
	})},
	{name: "ForEach, Limit(2)", do: levels(func(n int) {
		must(async.ForEach(context.Background(), upTo(n), func(context.Context, int) error { return nil }, async.Limit(2)))
	})},
	{name: "jobqueue: Add all, Take and Ack each", do: levels(func(n int) {
		q := jobqueue.New[int]()
		scoped(func(ctx context.Context) {
			for i := range n {
				q.Add(i)
			}
			for range n {
				jobs, err := q.Take(ctx, 1)
				must(err)
				q.Ack(ctx, jobs...)
			}
		})
	})},
	{name: "jobqueue: taken by one scope and returned", do: levels(func(n int) {
		q := jobqueue.New[int]()
		for i := range n {
			q.Add(i)
		}
		_ = async.Scope(context.Background(), func(ctx context.Context) error {
			for range n {
				if _, err := q.Take(ctx, 1); err != nil {
					return err
				}
			}
			return errStopped
		})
		queued, taken := q.Len()
		mustBe(queued == n && taken == 0)
	})},
	{name: "scheduler: workers of a scope", do: levels(func(n int) {
		s := scheduler.New(scheduler.Goroutines())
		scoped(func(ctx context.Context) {
			for range n {
				must(s.NewWorker(ctx).Post(func() {}))
			}
		})
	})},
	{name: "scheduler: delayed, then cancelled", do: levels(func(n int) {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
		tasks := make([]scheduler.Task, n)
		for i := range tasks {
			var err error
			tasks[i], err = w.ScheduleAfter(time.Hour, func(context.Context) {})
			must(err)
		}
		for _, t := range tasks {
			mustBe(t.Cancel())
		}
		must(w.Drain(context.Background()))
	})},
	{name: "Shutdown of detached tasks", do: shutdown},
}

func upTo(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func scoped(f func(ctx context.Context)) {
	must(async.Scope(context.Background(), func(ctx context.Context) error { f(ctx); return nil }))
}

func repeatGo(ctx context.Context, n int) {
	for range n {
		async.Go(ctx, nothing)
	}
}

// cancelling measures from a cancellation until all n tasks have ended.
func cancelling(task func(ctx context.Context) error) func(n int) (time.Duration, int) {
	return func(n int) (time.Duration, int) {
		var start time.Duration
		err := async.Scope(context.Background(), func(ctx context.Context) error {
			for range n {
				async.Go(ctx, task)
			}
			time.Sleep(50 * time.Millisecond) // until they wait
			start = cpu()
			return errStopped
		})
		mustBe(errors.Is(err, errStopped))
		return cpu() - start, n
	}
}

// comeBack has n tasks lend the one slot to wait for what never comes, and
// cancels their waits.
func comeBack(n int) (time.Duration, int) {
	var start time.Duration
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		never, _ := async.NewPromise[int](ctx)
		waits, cancel := context.WithCancel(ctx)
		for range n {
			async.Go(ctx, func(ctx context.Context) error {
				brief, stop := context.WithCancel(ctx)
				defer context.AfterFunc(waits, stop)()
				defer stop()
				_, _ = never.Wait(brief)
				return nil
			})
		}
		time.Sleep(time.Duration(n) * 5 * time.Microsecond) // until they wait
		start = cpu()
		cancel()
		return nil
	}, async.Limit(1))
	must(err)
	return cpu() - start, n
}

// awaitAmong measures an Await of a task that n others await.
func awaitAmong(n int) (spent time.Duration, units int) {
	scoped(func(ctx context.Context) {
		open := make(chan struct{})
		f := async.Execute(ctx, func(context.Context) (int, error) { <-open; return 1, nil })
		for range n {
			async.Go(ctx, func(ctx context.Context) error { _, err := f.Wait(ctx); return err })
		}
		time.Sleep(time.Duration(n) * 5 * time.Microsecond) // until they wait
		start := cpu()
		for range 10 {
			brief, cancel := context.WithCancel(ctx)
			async.Go(ctx, func(context.Context) error { cancel(); return nil })
			_, _ = f.Wait(brief)
		}
		spent = cpu() - start
		close(open)
	})
	return spent, 10
}

// shutdown measures how long Shutdown takes for n detached tasks that end when
// they are told to. Its root is one of its own.
func shutdown(n int) (time.Duration, int) {
	ctx, _ := asynctest.Root(context.Background())
	for range n {
		async.Detach(ctx, "detached", func(ctx context.Context) error { <-ctx.Done(); return nil })
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	start := cpu()
	_ = async.Shutdown(ended)
	_ = async.Shutdown(context.WithoutCancel(ctx))
	return cpu() - start, n
}
