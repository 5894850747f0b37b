package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/ambit-go/ambit/bench/internal/measure"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
	"github.com/ambit-go/ambit/locks"
	locksmem "github.com/ambit-go/ambit/locks/memstore"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/sqlstore"
)

// durableCurves are those of the modules with stores, on stores that need no server.
func durableCurves() []curve {
	return []curve{
		{ID: "S13", group: "taskqueue", what: "Enqueue in memory", axis: "producers", at: few, with: enqueue(inMemory)},
		{ID: "S14", group: "taskqueue", what: "Enqueue in SQLite, each on disk", axis: "producers", at: many, with: enqueue(inSQLite)},
		{ID: "S15", group: "taskqueue", what: "Work in memory, tasks that wait for 1 ms", axis: "workers", at: many, waits: true, with: workOff},
		{ID: "S16", group: "locks", what: "With of one lock in memory", axis: "workers", at: few, with: locked(func(int) string { return "one" })},
		{ID: "S17", group: "locks", what: "With in memory, a lock for each worker", axis: "workers", at: few, with: locked(func(i int) string { return fmt.Sprint(i) })},
		{ID: "S18", group: "kvqueue", what: "Enqueue in memory", axis: "producers", at: few, with: enqueueKV},
		{ID: "S19", group: "kvqueue", what: "Do in memory, what was added before", axis: "consumers", at: few, with: consumeKV},
	}
}

var payload = make([]byte, 100)

func inMemory() (taskqueue.Store, func()) {
	s := memstore.New()
	return s, func() { must(s.Close()) }
}

func inSQLite() (taskqueue.Store, func()) {
	dir, err := os.MkdirTemp("", "scaling")
	must(err)
	s, err := sqlstore.OpenFile(context.Background(), filepath.Join(dir, "tasks.db"))
	must(err)
	return s, func() { must(s.Close()); must(os.RemoveAll(dir)) }
}

func enqueue(open func() (taskqueue.Store, func())) func(n int) (measure.Work, func()) {
	return func(n int) (measure.Work, func()) {
		s, stop := open()
		q, err := taskqueue.New(s)
		must(err)
		return func(units int) {
			share(n, units, func(units int) {
				for range units {
					_, err := q.Enqueue(context.Background(), taskqueue.Task{Type: "t", Payload: payload})
					must(err)
				}
			})
		}, stop
	}
}

// workOff has n tasks of a queue run at the same time. Half of a run adds them: that is in the time, as it is for users.
func workOff(n int) (measure.Work, func()) {
	s, stop := inMemory()
	q, err := taskqueue.New(s)
	must(err)
	return func(units int) {
		tasks := make([]taskqueue.Task, units)
		for i := range tasks {
			tasks[i] = taskqueue.Task{Type: "t", Payload: payload}
		}
		_, err := q.EnqueueAll(context.Background(), tasks)
		must(err)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var done atomic.Int64
		must(q.Work(ctx, taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			defer func() {
				if done.Add(1) == int64(units) {
					cancel()
				}
			}()
			return wait(ctx)
		}}, taskqueue.Concurrency(n)))
	}, stop
}

// locked has n goroutines take a lock and give it back; key says which.
func locked(key func(i int) string) func(n int) (measure.Work, func()) {
	return func(n int) (measure.Work, func()) {
		m, err := locks.New(locksmem.New())
		must(err)
		var next atomic.Int64
		return func(units int) {
			share(n, units, func(units int) {
				key := key(int(next.Add(1)) % n)
				for range units {
					must(m.With(context.Background(), key, nothing))
				}
			})
		}, func() { must(m.Close()) }
	}
}

func openKV() (*kvqueue.Queue, func()) {
	kv := memkv.New()
	q, err := kvqueue.Open(context.Background(), kv, "q")
	must(err)
	return q, func() { must(q.Close(context.Background())); kv.Close() }
}

func enqueueKV(n int) (measure.Work, func()) {
	q, stop := openKV()
	return func(units int) {
		share(n, units, func(units int) {
			for range units {
				_, err := q.Enqueue(context.Background(), payload)
				must(err)
			}
		})
	}, stop
}

// consumeKV has n consumers take and acknowledge what one call has added; that is in the time.
func consumeKV(n int) (measure.Work, func()) {
	q, stop := openKV()
	return func(units int) {
		items := make([][]byte, units)
		for i := range items {
			items[i] = payload
		}
		for batch := range slices.Chunk(items, 100) {
			_, err := q.Enqueue(context.Background(), batch...)
			must(err)
		}
		share(n, units, func(units int) {
			for range units {
				must(q.Do(context.Background(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
			}
		})
	}, stop
}
