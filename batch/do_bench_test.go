package batch_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
)

// commitByHand is group commit as it is written by hand: a channel of requests, and a
// goroutine that takes all that are there, flushes them, and answers each.
type commitByHand struct {
	in   chan commitRequest
	done chan struct{}
}

type commitRequest struct {
	item   int
	answer chan error
}

const mostByHand = 128 // requests that are flushed together

func newCommitByHand(flush func([]int) error) *commitByHand {
	h := &commitByHand{in: make(chan commitRequest, mostByHand), done: make(chan struct{})}
	go h.run(flush)
	return h
}

func (h *commitByHand) run(flush func([]int) error) {
	defer close(h.done)
	for first := range h.in {
		requests := []commitRequest{first}
		for more := true; more && len(requests) < mostByHand; {
			select {
			case r, ok := <-h.in:
				if more = ok; ok {
					requests = append(requests, r)
				}
			default:
				more = false
			}
		}
		items := make([]int, len(requests))
		for i, r := range requests {
			items[i] = r.item
		}
		err := flush(items)
		for _, r := range requests {
			r.answer <- err
		}
	}
}

func (h *commitByHand) do(ctx context.Context, item int) error {
	r := commitRequest{item, make(chan error, 1)}
	select {
	case h.in <- r:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-r.answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *commitByHand) stop() {
	close(h.in)
	<-h.done
}

// commit has so many callers do n items, one after another each.
func commit(tb testing.TB, callers, n int, do func(context.Context, int) error) {
	ctx, cancel := context.WithCancel(tb.Context())
	defer cancel()
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := c; i < n; i += callers {
				if err := do(ctx, i); err != nil {
					tb.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// A store takes a while for a flush: cost without leaving the processor, as a memory
// table does.
func store(cost time.Duration, got, flushes *int) func([]int) error {
	return func(items []int) error {
		*got += len(items)
		*flushes++
		for begin := time.Now(); cost > 0 && time.Since(begin) < cost; {
		}
		return nil
	}
}

func commitToBatch(tb testing.TB, callers, n int, cost time.Duration) (flushes int) {
	got := 0
	flush := store(cost, &got, &flushes)
	err := async.Scope(tb.Context(), func(ctx context.Context) error {
		b := batch.New(ctx, func(_ context.Context, items []int) error { return flush(items) })
		commit(tb, callers, n, b.Do)
		return nil
	})
	if err != nil || got != n {
		tb.Fatal(err, got)
	}
	return flushes
}

func commitToHand(tb testing.TB, callers, n int, cost time.Duration) (flushes int) {
	got := 0
	h := newCommitByHand(store(cost, &got, &flushes))
	commit(tb, callers, n, h.do)
	h.stop()
	if got != n {
		tb.Fatal(got)
	}
	return flushes
}

func BenchmarkDo(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(strconv.Itoa(callers)+" callers", func(b *testing.B) {
			b.ReportAllocs()
			b.ReportMetric(float64(b.N)/float64(commitToBatch(b, callers, b.N, 0)), "items/flush")
		})
	}
}

func BenchmarkDoByHand(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(strconv.Itoa(callers)+" callers", func(b *testing.B) {
			b.ReportAllocs()
			b.ReportMetric(float64(b.N)/float64(commitToHand(b, callers, b.N, 0)), "items/flush")
		})
	}
}

// BenchmarkDoBesideByHand runs both in turn, eleven times each, and reports the medians
// and their ratio, for a flush that takes no time and for one that takes 20 µs.
func BenchmarkDoBesideByHand(b *testing.B) {
	const rounds = 11
	for _, cost := range []time.Duration{0, 20 * time.Microsecond} {
		for _, callers := range []int{1, 8, 64} {
			b.Run("flush "+cost.String()+" "+strconv.Itoa(callers)+" callers", func(b *testing.B) {
				n := 20_000
				if cost > 0 {
					n = 500 * callers
				}
				for range b.N {
					var ours, theirs []float64
					for range rounds {
						begin := time.Now()
						commitToBatch(b, callers, n, cost)
						ours = append(ours, float64(time.Since(begin))/float64(n))
						begin = time.Now()
						commitToHand(b, callers, n, cost)
						theirs = append(theirs, float64(time.Since(begin))/float64(n))
					}
					slices.Sort(ours)
					slices.Sort(theirs)
					b.ReportMetric(ours[rounds/2], "batch-ns/do")
					b.ReportMetric(theirs[rounds/2], "hand-ns/do")
					b.ReportMetric(ours[rounds/2]/theirs[rounds/2], "ratio")
				}
			})
		}
	}
}
