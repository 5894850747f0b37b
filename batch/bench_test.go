package batch_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
)

const (
	benchItems = 1000
	benchAge   = time.Second
)

// byHand is what a batch replaces: a channel, a goroutine that gathers what comes
// out of it, and a timer that is set when the first item comes.
type byHand struct {
	in   chan int
	done chan struct{}
}

func newByHand(flush func([]int)) *byHand {
	h := &byHand{in: make(chan int, benchItems), done: make(chan struct{})}
	go func() {
		defer close(h.done)
		timer := time.NewTimer(benchAge)
		timer.Stop()
		var items []int
		send := func() {
			timer.Stop()
			flush(items)
			items = make([]int, 0, benchItems)
		}
		for {
			select {
			case i, ok := <-h.in:
				if !ok {
					send()
					return
				}
				if len(items) == 0 {
					timer.Reset(benchAge)
				}
				if items = append(items, i); len(items) == benchItems {
					send()
				}
			case <-timer.C:
				send()
			}
		}
	}()
	return h
}

func (h *byHand) stop() {
	close(h.in)
	<-h.done
}

// produce calls add n times from so many goroutines.
func produce(producers, n int, add func(int)) {
	if producers == 1 {
		for i := range n {
			add(i)
		}
		return
	}
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := p; i < n; i += producers {
				add(i)
			}
		})
	}
	wg.Wait()
}

func addToBatch(tb testing.TB, producers, n int) {
	got := 0
	err := async.Scope(tb.Context(), func(ctx context.Context) error {
		b := batch.New(ctx, func(_ context.Context, items []int) error {
			got += len(items)
			return nil
		}, batch.Items(benchItems), batch.Age(benchAge))
		produce(producers, n, func(i int) {
			if err := b.Add(ctx, i); err != nil {
				tb.Error(err)
			}
		})
		return nil
	})
	if err != nil || got != n {
		tb.Fatal(err, got)
	}
}

func addByHand(tb testing.TB, producers, n int) {
	got := 0
	h := newByHand(func(items []int) { got += len(items) })
	produce(producers, n, func(i int) { h.in <- i })
	h.stop()
	if got != n {
		tb.Fatal(got)
	}
}

func BenchmarkAdd(b *testing.B) {
	for name, producers := range map[string]int{"1 producer": 1, "8 producers": 8} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			addToBatch(b, producers, b.N)
		})
	}
}

func BenchmarkAddByHand(b *testing.B) {
	for name, producers := range map[string]int{"1 producer": 1, "8 producers": 8} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			addByHand(b, producers, b.N)
		})
	}
}

// BenchmarkAddBesideByHand runs both in turn, eleven times each, and reports the
// medians and their ratio: what the machine does meanwhile happens to both.
func BenchmarkAddBesideByHand(b *testing.B) {
	const rounds, n = 11, 200_000
	for name, producers := range map[string]int{"1 producer": 1, "8 producers": 8} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				var ours, theirs []float64
				for range rounds {
					begin := time.Now()
					addToBatch(b, producers, n)
					ours = append(ours, float64(time.Since(begin))/n)
					begin = time.Now()
					addByHand(b, producers, n)
					theirs = append(theirs, float64(time.Since(begin))/n)
				}
				slices.Sort(ours)
				slices.Sort(theirs)
				b.ReportMetric(ours[rounds/2], "batch-ns/add")
				b.ReportMetric(theirs[rounds/2], "hand-ns/add")
				b.ReportMetric(ours[rounds/2]/theirs[rounds/2], "ratio")
			}
		})
	}
}

// An Add allocates nothing; what is allocated for each flush is shared by all the
// Adds before it.
func TestAddAllocatesNothing(t *testing.T) {
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		b := batch.New(ctx, func(context.Context, []int) error { return nil }, batch.Items(10_000), batch.Age(time.Hour), batch.Capacity(1_000_000))
		for range 50_000 {
			if err := b.Add(ctx, 1); err != nil {
				return err
			}
		}
		const perRun = 10_000
		allocs := testing.AllocsPerRun(20, func() {
			for range perRun {
				_ = b.Add(ctx, 1)
			}
		})
		if allocs > perRun/100 {
			t.Errorf("%v allocations in %d Adds", allocs, perRun)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
