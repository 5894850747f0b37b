package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/recipes"
)

// A bench measures queues beside each other on one store.
type bench struct {
	*env
	items, consumers int
	limit            time.Duration
	prefix           string // with which all keys begin that it writes
	kv               *counted
}

// A contender is one queue of the table.
type contender struct {
	name string
	// fill adds values; take gives f one item after another until ctx ends, or returns when
	// there are no more. n is the number of a consumer.
	fill func(ctx context.Context, values [][]byte) error
	take func(ctx context.Context, n int, f func()) error
	done func(ctx context.Context) error
}

func benchCommand(f *flag.FlagSet) func(context.Context, *env) error {
	b := &bench{}
	f.IntVar(&b.items, "items", 2000, "how many items each queue has at the beginning")
	f.IntVar(&b.consumers, "consumers", 8, "how many take them at the same time, each as a process would")
	f.DurationVar(&b.limit, "limit", 20*time.Second, "how long a queue may take; what it has not done by then is not counted")
	var how access
	how.flags(f)
	etcd := f.String("etcd", "", "the `endpoints` of a cluster, host:port,host:port; without it a file is measured that is made for this")
	return func(ctx context.Context, e *env) (err error) {
		if b.items < 1 || b.consumers < 1 || b.limit <= 0 {
			return usagef("-items, -consumers and -limit are more than nothing")
		}
		dir, err := os.MkdirTemp("", "kvq")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		url := "sqlite:" + filepath.Join(dir, "bench.db")
		if *etcd != "" {
			url = "etcd:" + *etcd
		}
		s, err := openStore(ctx, url, true, how)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.close()) }()
		b.env, b.prefix, b.kv = e, "kvq-bench-"+strings.ToLower(rand.Text()), &counted{KV: s.kv}
		e.sayf("%d consumers take %d items of 100 bytes from %s\n\n", b.consumers, b.items, s.name)
		return b.run(ctx)
	}
}

// run measures one queue after another, and deletes what it has written.
func (b *bench) run(ctx context.Context) error {
	w := tabwriter.NewWriter(b.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "queue\titems/s\tconflicts\ttransactions\tmost/least\t")
	for _, c := range b.contenders() {
		err := b.measure(ctx, w, c)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		err = errors.Join(err, c.done(end), b.clean(end))
		cancel()
		if err != nil {
			return err
		}
	}
	return w.Flush()
}

func (b *bench) contenders() []contender {
	recipe := func(name string, q *recipes.Queue) contender {
		return contender{name: name,
			fill: func(ctx context.Context, values [][]byte) error { return q.Enqueue(ctx, values...) },
			take: func(ctx context.Context, _ int, f func()) error {
				for {
					_, ok, err := q.Dequeue(ctx)
					if err != nil || !ok {
						return err
					}
					f()
				}
			},
			done: func(context.Context) error { return nil },
		}
	}
	return []contender{
		recipe("race for the head (the recipe)", recipes.RaceHead(b.kv, b.prefix+"/race/")),
		recipe("staging, everybody fulfils", recipes.Staging(b.kv, b.prefix+"/staging/")),
		b.ours("kvqueue, a handle each", b.consumers),
		b.ours("kvqueue, one handle", 1),
		recipe("one of the first, by chance", recipes.Relaxed(b.kv, b.prefix+"/relaxed/", 8*b.consumers)),
	}
}

// ours is package kvqueue, with so many handles for the consumers.
func (b *bench) ours(name string, handles int) contender {
	var queues []*kvqueue.Queue
	open := func(ctx context.Context) error {
		for len(queues) < handles {
			q, err := kvqueue.Open(ctx, b.kv, name, kvqueue.Prefix(b.prefix), kvqueue.CompactedElsewhere())
			if err != nil {
				return err
			}
			queues = append(queues, q)
		}
		return nil
	}
	return contender{name: name,
		fill: func(ctx context.Context, values [][]byte) error {
			if err := open(ctx); err != nil {
				return err
			}
			_, err := queues[0].Enqueue(ctx, values...)
			return err
		},
		take: func(ctx context.Context, n int, f func()) error {
			for {
				err := queues[n%handles].Do(ctx, 1, func(context.Context, []kvqueue.Item) error { f(); return nil })
				if err != nil {
					return err
				}
			}
		},
		done: func(ctx context.Context) (err error) {
			for _, q := range queues {
				err = errors.Join(err, q.Close(ctx))
			}
			return err
		},
	}
}

// batch is how many items are added at once.
const batch = 50

var errBenchDone = errors.New("all items are taken")

// measure writes one line of the table.
func (b *bench) measure(ctx context.Context, w *tabwriter.Writer, c contender) error {
	for n := 0; n < b.items; n += batch {
		values := make([][]byte, min(batch, b.items-n))
		for i := range values {
			values[i] = make([]byte, 100)
		}
		if err := c.fill(ctx, values); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	b.kv.reset()
	taken := make([]atomic.Int64, b.consumers)
	var total atomic.Int64
	begin := time.Now()
	taking, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err := async.Scope(taking, func(ctx context.Context) error {
		for n := range b.consumers {
			async.Go(ctx, func(ctx context.Context) error {
				return c.take(ctx, n, func() {
					taken[n].Add(1)
					if total.Add(1) == int64(b.items) {
						stop(errBenchDone)
					}
				})
			})
		}
		return nil
	}, async.Timeout(b.limit))
	spent := time.Since(begin)
	if ctx.Err() != nil || err != nil && !errors.Is(err, errBenchDone) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	counts := make([]int64, b.consumers)
	for i := range taken {
		counts[i] = taken[i].Load()
	}
	commits, conflicts := b.kv.commits.Load(), b.kv.conflicts.Load()
	share := "-"
	if least := slices.Min(counts); least > 0 {
		share = fmt.Sprintf("%.1f", float64(slices.Max(counts))/float64(least))
	}
	_, err = fmt.Fprintf(w, "%s\t%.0f\t%d %%\t%.1f an item\t%s\t\n", c.name, float64(total.Load())/spent.Seconds(), percent(conflicts, max(commits, 1)),
		float64(commits)/float64(max(total.Load(), 1)), share)
	return err
}

// clean deletes everything with the prefix.
func (b *bench) clean(ctx context.Context) error {
	begin, end := []byte(b.prefix), []byte(b.prefix+"\xff")
	for {
		results, _, err := b.kv.Read(ctx, kvqueue.Range{Begin: begin, End: end, Limit: 100, KeysOnly: true})
		if err != nil || len(results[0].Pairs) == 0 {
			return err
		}
		var writes []kvqueue.Write
		for _, p := range results[0].Pairs {
			writes = append(writes, kvqueue.Write{Key: p.Key, Delete: true})
			begin = p.Key
		}
		if _, err := b.kv.Commit(ctx, nil, writes); err != nil {
			return err
		}
	}
}

// A counted is a store that counts transactions.
type counted struct {
	kvqueue.KV
	commits, conflicts atomic.Int64
}

func (c *counted) reset() { c.commits.Store(0); c.conflicts.Store(0) }

func (c *counted) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	rev, err := c.KV.Commit(ctx, guards, writes)
	c.commits.Add(1)
	if errors.Is(err, kvqueue.ErrConflict) {
		c.conflicts.Add(1)
	}
	return rev, err
}
