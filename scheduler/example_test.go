package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
)

func Example() {
	ctx := context.Background()
	w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx)
	balance := 0 // no lock: tasks of w never overlap
	for range 10 {
		_ = w.Post(func() { balance += 10 })
	}
	sum, err := scheduler.Call(ctx, w, func(context.Context) (int, error) { return balance, nil })
	fmt.Println(sum, err)
	// Output: 100 <nil>
}

// An option of the scheduler holds for the workers that do not say otherwise.
func ExampleNew() {
	s := scheduler.New(scheduler.Inline(), scheduler.Name("some worker"),
		scheduler.Observe(func(e scheduler.Event) { fmt.Println(e.Worker, e.Outcome) }))
	_ = s.NewWorker(context.Background(), scheduler.Name("mail")).Post(func() {})
	_ = s.NewWorker(context.Background()).Post(func() {})
	// Output:
	// mail done
	// some worker done
}

func ExampleScheduler_NewWorker() {
	s := scheduler.New(scheduler.Goroutines())
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		w := s.NewWorker(ctx)
		return w.Post(func() { fmt.Println("done before Scope returns") })
	})
	fmt.Println("workers:", s.Stats().Workers)
	// Output:
	// done before Scope returns
	// workers: 0
}

func ExampleScheduler_Close() {
	s := scheduler.New(scheduler.Goroutines())
	w := s.NewWorker(context.Background())
	_ = s.Close()
	fmt.Println(w.Post(func() {}))
	// Output: scheduler: worker closed
}

func ExampleScheduler_Drain() {
	s := scheduler.New(scheduler.Goroutines())
	a, b := s.NewWorker(context.Background()), s.NewWorker(context.Background())
	done := make([]bool, 2)
	_ = a.Post(func() { done[0] = true })
	_ = b.Post(func() { done[1] = true })
	fmt.Println(s.Drain(context.Background()), done)
	// Output: <nil> [true true]
}

func ExampleScheduler_Stats() {
	s := scheduler.New(scheduler.Inline())
	w := s.NewWorker(context.Background())
	_, _ = w.PostAll(slices.Values([]func(){func() {}, func() {}, func() {}}))
	fmt.Println("a burst of three, submissions:", s.Stats().Submissions)
	// Output: a burst of three, submissions: 1
}

func ExampleExecutorWorker_Post() {
	w := scheduler.New(scheduler.Inline()).NewWorker(context.Background())
	_ = w.Post(func() {
		_ = w.Post(func() { fmt.Println("second") }) // queued, not run here
		fmt.Println("first")
	})
	// Output:
	// first
	// second
}

func ExampleExecutorWorker_PostAll() {
	w := scheduler.New(scheduler.Inline()).NewWorker(context.Background())
	say := func(s string) func() { return func() { fmt.Print(s, " ") } }
	n, err := w.PostAll(slices.Values([]func(){say("a"), say("b"), say("c")}))
	fmt.Println(n, err)
	// Output: a b c 3 <nil>
}

func ExampleExecutorWorker_Schedule() {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
	started := make(chan struct{})
	running, _ := w.Schedule(func(ctx context.Context) {
		close(started)
		<-ctx.Done()
	})
	queued, _ := w.Schedule(func(context.Context) { fmt.Println("never") })
	<-started
	fmt.Println(queued.Cancel(), queued.State())
	fmt.Println(running.Cancel()) // too late to stop it: its context is cancelled
	_ = w.Drain(context.Background())
	fmt.Println(running.State())
	// Output:
	// true cancelled
	// false
	// done
}

func ExampleExecutorWorker_ScheduleAfter() {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
	say := func(s string) func(context.Context) { return func(context.Context) { fmt.Println(s) } }
	last := make(chan struct{})
	_, _ = w.ScheduleAfter(time.Hour, say("not within this hour"))
	_, _ = w.ScheduleAfter(0, say("first"))
	_, _ = w.ScheduleAfter(20*time.Millisecond, func(context.Context) { fmt.Println("second"); close(last) })
	<-last
	_ = w.Close()
	// Output:
	// first
	// second
}

func ExampleExecutorWorker_ScheduleAt() {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
	done := make(chan struct{})
	_, err := w.ScheduleAt(time.Now().Add(time.Millisecond), func(context.Context) { close(done) })
	<-done
	fmt.Println(err)
	// Output: <nil>
}

func ExampleExecutorWorker_ScheduleEvery() {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
	ticks, done := 0, make(chan struct{})
	task, _ := w.ScheduleEvery(0, time.Millisecond, func(context.Context) {
		if ticks++; ticks == 3 {
			close(done)
		}
	})
	<-done
	task.Cancel()
	_ = w.Drain(context.Background())
	fmt.Println(task.State())
	// Output: cancelled
}

// A pause of at least a period between two runs, however long they take.
func ExampleFixedDelay() {
	const period = time.Millisecond
	w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
	var ends []time.Time
	twice := make(chan time.Duration, 1)
	_, _ = w.ScheduleEvery(0, period, func(context.Context) {
		if len(ends) == 1 {
			twice <- time.Since(ends[0])
		}
		ends = append(ends, time.Now())
	}, scheduler.FixedDelay())
	fmt.Println(<-twice >= period)
	_ = w.Close()
	// Output: true
}

// The first run takes five periods. The four or more runs that it has missed follow at once.
func ExampleBurst() {
	const period = 10 * time.Millisecond
	w := scheduler.New(scheduler.Inline()).NewWorker(context.Background())
	runs := 0
	task, _ := w.ScheduleEvery(0, period, func(context.Context) {
		if runs++; runs == 1 {
			time.Sleep(5 * period)
		}
	}, scheduler.Burst()) // returns when no run is due
	task.Cancel()
	_ = w.Wait(context.Background())
	fmt.Println(runs >= 5)
	// Output: true
}

func ExampleExecutorWorker_CancelPending() {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
	open, begun := make(chan struct{}), make(chan struct{})
	_ = w.Post(func() { close(begun); <-open })
	_ = w.Post(func() { fmt.Println("never") })
	_ = w.Post(func() { fmt.Println("never") })
	<-begun
	fmt.Println(w.Len(), w.CancelPending(), w.Len())
	close(open)
	_ = w.Drain(context.Background())
	// Output: 2 2 0
}

func ExampleExecutorWorker_Wait() {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
	x := 0
	_ = w.Post(func() { x = 42 })
	fmt.Println(w.Wait(context.Background()), x)
	// Output: <nil> 42
}

func ExampleExecutorWorker_Drain() {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
	_ = w.Post(func() { fmt.Println("queued: runs") })
	_, _ = w.ScheduleAfter(time.Hour, func(context.Context) { fmt.Println("not due: does not") })
	fmt.Println(w.Drain(context.Background()), w.Closed())
	// Output:
	// queued: runs
	// <nil> true
}

func ExampleExecutorWorker_Stats() {
	w := scheduler.New(scheduler.Inline()).NewWorker(context.Background())
	_ = w.Post(func() {})
	_, _ = w.ScheduleAfter(time.Hour, func(context.Context) {})
	st := w.Stats()
	fmt.Println(st.Scheduled, st.Done, st.Pending, st.Delayed)
	_ = w.Close()
	// Output: 2 1 1 1
}

func ExampleSubmit() {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
	future := scheduler.Submit(w, func(context.Context) (string, error) { return "answer", nil })
	fmt.Println(future.Await(context.Background(), time.Minute))
	// Output: answer <nil>
}

func ExampleCall() {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
	_, err := scheduler.Call(context.Background(), w, func(ctx context.Context) (int, error) {
		return scheduler.Call(ctx, w, func(context.Context) (int, error) { return 1, nil }) // of itself
	})
	fmt.Println(errors.Is(err, scheduler.ErrSelfWait))
	// Output: true
}

func ExampleInWorker() {
	w := scheduler.New(scheduler.Inline()).NewWorker(context.Background())
	_, _ = w.Schedule(func(ctx context.Context) { fmt.Println(scheduler.InWorker(ctx, w)) })
	fmt.Println(scheduler.InWorker(context.Background(), w))
	// Output:
	// true
	// false
}

// takingTurns runs two tasks on each of two workers that share one goroutine.
func takingTurns(task func(), opts ...scheduler.Option) {
	one := semaphore.NewWeighted(1)
	s := scheduler.New(scheduler.Limited(one), opts...)
	a, b := s.NewWorker(context.Background()), s.NewWorker(context.Background())
	_ = one.Acquire(context.Background(), 1) // until all are posted
	for i := range 2 {
		_ = a.Post(func() { task(); fmt.Print("a", i, " ") })
		_ = b.Post(func() { task(); fmt.Print("b", i, " ") })
	}
	one.Release(1)
	_ = s.Drain(context.Background())
}

// Workers that share one goroutine take turns task by task.
func ExampleBatch() {
	takingTurns(func() {}, scheduler.Batch(1))
	// Output: a0 b0 a1 b1
}

// A task that takes a while is the last before the other worker has its turn.
func ExampleSlice() {
	takingTurns(func() { time.Sleep(time.Millisecond) }, scheduler.Slice(time.Microsecond))
	// Output: a0 b0 a1 b1
}

// The name of a worker stands in the errors that tell of it.
func ExampleName() {
	w := scheduler.New(scheduler.Inline()).NewWorker(context.Background(), scheduler.Name("mail"),
		scheduler.RecoverPanics(func(p *async.PanicError) { fmt.Println(p.Task) }))
	_ = w.Post(func() { panic("boom") })
	// Output: mail
}

func ExampleCapacity() {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background(), scheduler.Capacity(1, scheduler.Fail))
	open, begun := make(chan struct{}), make(chan struct{})
	_ = w.Post(func() { close(begun); <-open })
	<-begun
	fmt.Println(w.Post(func() {}), w.Post(func() {}))
	close(open)
	_ = w.Drain(context.Background())
	// Output: <nil> scheduler: queue full
}

func ExampleRecoverPanics() {
	w := scheduler.New(scheduler.Inline()).NewWorker(context.Background(),
		scheduler.RecoverPanics(func(p *async.PanicError) { fmt.Println("panic:", p.Value) }))
	_ = w.Post(func() { panic("boom") })
	_ = w.Post(func() { fmt.Println("goes on") })
	// Output:
	// panic: boom
	// goes on
}

func ExampleCloseOnPanic() {
	w := scheduler.New(scheduler.Inline()).NewWorker(context.Background(), scheduler.CloseOnPanic(),
		scheduler.RecoverPanics(func(p *async.PanicError) {}))
	_ = w.Post(func() { panic("boom") })
	fmt.Println(w.Closed())
	// Output: true
}

func ExamplePoolContext() {
	ctx, cancel := context.WithCancelCause(context.Background())
	dropping := scheduler.ExecutorFunc(func(func()) error { return nil }) // accepts, and runs nothing
	w := scheduler.New(dropping, scheduler.PoolContext(ctx)).NewWorker(context.Background())
	task, _ := w.Schedule(func(context.Context) {})
	cancel(errors.New("pool stopped"))
	fmt.Println(w.Wait(context.Background()), task.State())
	// Output: <nil> rejected
}

func ExampleObserve() {
	w := scheduler.New(scheduler.Inline()).NewWorker(context.Background(), scheduler.Name("mail"),
		scheduler.Observe(func(e scheduler.Event) { fmt.Println(e.Worker, e.Outcome) }))
	_ = w.Post(func() {})
	// Output: mail done
}

// Two workers run at the same time: each waits for the other.
func ExampleGoroutines() {
	s := scheduler.New(scheduler.Goroutines())
	meet := make(chan string)
	_ = s.NewWorker(context.Background()).Post(func() { meet <- "met" })
	_ = s.NewWorker(context.Background()).Post(func() { fmt.Println(<-meet) })
	_ = s.Drain(context.Background())
	// Output: met
}

func ExampleInline() {
	w := scheduler.New(scheduler.Inline()).NewWorker(context.Background())
	_ = w.Post(func() { fmt.Println("runs") })
	fmt.Println("has run")
	// Output:
	// runs
	// has run
}

func ExampleLimited() {
	s := scheduler.New(scheduler.Limited(semaphore.NewWeighted(4)), scheduler.Batch(8))
	total := make([]int, 100)
	for i := range total {
		w := s.NewWorker(context.Background())
		for range 10 {
			_ = w.Post(func() { total[i]++ })
		}
	}
	_ = s.Drain(context.Background())
	fmt.Println(slices.Min(total), slices.Max(total))
	// Output: 10 10
}

func ExampleErrgroup() {
	var g errgroup.Group
	g.SetLimit(2)
	w := scheduler.New(scheduler.Errgroup(&g)).NewWorker(context.Background())
	_ = w.Post(func() { fmt.Println("on a goroutine of the group") })
	_ = w.Drain(context.Background())
	_ = g.Wait()
	// Output: on a goroutine of the group
}
