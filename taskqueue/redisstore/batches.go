package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/group"
)

// batches sends calls of Enqueue that come at the same time as one script.
type batches struct {
	s      *Store
	queues sync.Map // name -> *group.Group[*batch]
}

// A batch is one call of Enqueue.
type batch struct {
	tasks   []taskqueue.NewTask
	size    int // of the payloads
	results []taskqueue.Result
	err     error
}

func (b *batches) init(s *Store) { b.s = s }

func (b *batches) enqueue(ctx context.Context, queue string, tasks []taskqueue.NewTask, size int) ([]taskqueue.Result, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	g, ok := b.queues.Load(queue)
	if !ok {
		g, _ = b.queues.LoadOrStore(queue, group.New(taskqueue.MaxBatch, func(all []*batch) error { b.send(queue, all); return nil }))
	}
	one := &batch{tasks: tasks, size: size}
	if err := g.(*group.Group[*batch]).Do(one); err != nil {
		return nil, err
	}
	return one.results, one.err
}

// sendTimeout bounds a script that carries the calls of many: none of their contexts
// is the one to end it.
const sendTimeout = 10 * time.Second

// send sends calls together, as many at a time as a step may have.
func (b *batches) send(queue string, all []*batch) {
	for len(all) > 0 {
		n, count, size := 0, 0, 0
		for n < len(all) && (n == 0 || count+len(all[n].tasks) <= taskqueue.MaxBatch && size+all[n].size <= taskqueue.MaxBatchBytes) {
			count += len(all[n].tasks)
			size += all[n].size
			n++
		}
		tasks := make([]taskqueue.NewTask, 0, count)
		for _, one := range all[:n] {
			tasks = append(tasks, one.tasks...)
		}
		ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
		results, err := b.s.enqueueNow(ctx, queue, tasks)
		cancel()
		for _, one := range all[:n] {
			if one.err = err; err == nil {
				one.results, results = results[:len(one.tasks):len(one.tasks)], results[len(one.tasks):]
			}
		}
		all = all[n:]
	}
}
