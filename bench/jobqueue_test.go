package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// Numbers of budget B9: a queue of distinct jobs, beside that of client-go (the
// one without a name has no metrics) and that of controller-runtime. Neither
// has scopes: what they took and did not finish because of a panic stays taken.
//
// Each group ends with a run in which all contenders take turns, and which
// reports how they compare to the first: the median of the turns.

// A contender does n operations on a queue of its own.
type contender struct {
	name string
	run  func(n int)
}

// compare has the contenders run one after the other, and then in turns of chunk
// operations.
func compare(b *testing.B, chunk int, contenders ...contender) {
	for _, c := range contenders {
		b.Run("impl="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			c.run(b.N)
		})
	}
	b.Run("ratios", func(b *testing.B) {
		ratios := make([][]float64, len(contenders))
		for b.Loop() {
			var first time.Duration
			for i, c := range contenders {
				start := time.Now()
				c.run(chunk)
				took := time.Since(start)
				if i == 0 {
					first = took
				}
				ratios[i] = append(ratios[i], float64(took)/float64(first))
			}
		}
		b.ReportMetric(0, "ns/op")
		for i, c := range contenders[1:] {
			slices.Sort(ratios[i+1])
			b.ReportMetric(ratios[i+1][len(ratios[i+1])/2], c.name+"/"+contenders[0].name)
		}
	})
}

// must panics, for it may be on any goroutine.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// fill adds jobs to a queue until depth of them wait. Who then adds the next of
// depth+1 keys and takes one goes round them for ever.
func fill(depth int, add func(int)) (next func() int) {
	for i := range depth {
		add(i)
	}
	key := depth - 1
	return func() int {
		if key++; key > depth {
			key = 0
		}
		return key
	}
}

func newPriorityQueue(b *testing.B) priorityqueue.PriorityQueue[int] {
	q := priorityqueue.New[int]("")
	b.Cleanup(q.ShutDown)
	return q
}

// Add, take and finish a job on one goroutine, with depth jobs before it.
func BenchmarkB9AddTakeDone(b *testing.B) {
	for _, depth := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			var contenders []contender
			{
				q := workqueue.NewTyped[int]()
				b.Cleanup(q.ShutDown)
				next := fill(depth, q.Add)
				contenders = append(contenders, contender{"workqueue", func(n int) {
					for range n {
						q.Add(next())
						job, _ := q.Get()
						q.Done(job)
					}
				}})
			}
			{
				q := newPriorityQueue(b)
				next := fill(depth, q.Add)
				contenders = append(contenders, contender{"priorityqueue", func(n int) {
					for range n {
						q.Add(next())
						job, _ := q.Get()
						q.Done(job)
					}
				}})
			}
			{
				q := jobqueue.New[int]()
				next := fill(depth, func(i int) { q.Add(i) })
				contenders = append(contenders, contender{"ambit-ack", func(n int) {
					err := async.Scope(context.Background(), func(ctx context.Context) error {
						for range n {
							q.Add(next())
							jobs, err := q.Take(ctx, 1)
							if err != nil {
								return err
							}
							q.Ack(ctx, jobs...)
						}
						return nil
					})
					must(err)
				}})
			}
			{
				q := jobqueue.New[int]()
				next := fill(depth, func(i int) { q.Add(i) })
				ctx, nothing := context.Background(), func(context.Context, []int) error { return nil }
				contenders = append(contenders, contender{"ambit-do", func(n int) {
					for range n {
						q.Add(next())
						must(q.Do(ctx, 1, nothing))
					}
				}})
			}
			compare(b, 1000, contenders...)
		})
	}
}

// Add n jobs, then take and finish them, on one goroutine at a time: no time is
// spent waiting. An operation is one job.
func BenchmarkB9Consume(b *testing.B) {
	compare(b, 1000,
		contender{"workqueue", func(n int) {
			q := workqueue.NewTyped[int]()
			for i := range n {
				q.Add(i)
			}
			q.ShutDown()
			for job, over := q.Get(); !over; job, over = q.Get() {
				q.Done(job)
			}
		}},
		contender{"ambit", func(n int) {
			q := jobqueue.New[int]()
			for i := range n {
				q.Add(i)
			}
			must(q.Consume(context.Background(), 1, 1, func(_ context.Context, jobs []int) error {
				if jobs[0] == n-1 {
					q.Close()
				}
				return nil
			}))
		}},
	)
}

// Add a job that is queued.
func BenchmarkB9Duplicate(b *testing.B) {
	theirs, heap, ours := workqueue.NewTyped[int](), newPriorityQueue(b), jobqueue.New[int]()
	b.Cleanup(theirs.ShutDown)
	theirs.Add(1)
	heap.Add(1)
	ours.Add(1)
	compare(b, 1000,
		contender{"workqueue", func(n int) {
			for range n {
				theirs.Add(1)
			}
		}},
		contender{"priorityqueue", func(n int) {
			for range n {
				heap.Add(1)
			}
		}},
		contender{"ambit", func(n int) {
			for range n {
				ours.Add(1)
			}
		}},
	)
}

// produce has each of some producers add its share of n jobs, all distinct, and
// returns when all have.
func produce(producers, n int, add func(int)) {
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

// peer is what the queues of client-go and controller-runtime have in common.
type peer interface {
	Add(int)
	Get() (int, bool)
	Done(int)
	ShutDown()
}

// through sends n jobs from producers to consumers by loops written by hand.
// Whoever finishes the last one shuts the queue down.
func through(q peer, producers, consumers, n int) {
	var wg sync.WaitGroup
	var done atomic.Int64
	for range consumers {
		wg.Go(func() {
			for {
				job, over := q.Get()
				if over {
					return
				}
				q.Done(job)
				if done.Add(1) == int64(n) {
					q.ShutDown()
				}
			}
		})
	}
	produce(producers, n, q.Add)
	wg.Wait()
}

// Jobs on their way from producers to consumers; an operation is one job. A queue
// is made for each run.
func BenchmarkB9Through(b *testing.B) {
	for _, many := range []int{1, 8} {
		b.Run(fmt.Sprintf("goroutines=%dx%d", many, many), func(b *testing.B) {
			compare(b, 10_000,
				contender{"workqueue", func(n int) { through(workqueue.NewTyped[int](), many, many, n) }},
				contender{"priorityqueue", func(n int) { through(priorityqueue.New[int](""), many, many, n) }},
				contender{"ambit", func(n int) {
					q := jobqueue.New[int]()
					var done atomic.Int64
					var wg sync.WaitGroup
					wg.Go(func() {
						err := q.Consume(context.Background(), many, 1, func(context.Context, []int) error {
							if done.Add(1) == int64(n) {
								q.Close()
							}
							return nil
						})
						must(err)
					})
					produce(many, n, func(i int) { q.Add(i) })
					wg.Wait()
				}},
			)
		})
	}
}
