package scheduler

import (
	"context"

	"github.com/ambit-go/ambit/internal/bridge"
)

// A Scheduler makes workers that share a pool. Any number of goroutines may use
// it. Closing it never touches the pool.
type Scheduler struct {
	o schedulerOptions
	d dispatcher
}

// New returns a scheduler for the pool ex.
//
//	s := scheduler.New(scheduler.Goroutines())
//
// # Details
//
// A nil ex panics.
func New(ex Executor, opts ...Option) *Scheduler {
	if ex == nil {
		panic("scheduler: New(nil): use Goroutines() if there is no pool")
	}
	s := new(Scheduler)
	s.o.batch = defaultBatch
	for _, o := range opts {
		o.applyScheduler(&s.o)
	}
	s.d.init(ex)
	if ctx := s.o.pool; ctx != nil {
		unwatch := context.AfterFunc(ctx, s.poolEnded)
		s.d.mu.Lock()
		s.d.unwatchPool = unwatch
		s.d.mu.Unlock()
	}
	return s
}

// NewWorker returns a worker that has nothing to do, whose tasks have children of ctx as
// their contexts.
//
//	w := s.NewWorker(ctx, scheduler.Name("mail"))
//	err := w.Post(func() { sent++ }) // no lock: tasks of w never overlap
//
// # Details
//
// From the moment ctx is done no task of the worker starts and none is accepted; what is
// pending is cancelled with the cause.
//
// If ctx carries a scope of package async the worker ends with it. When its turn comes
// and ctx is not done, the worker is drained before Scope returns. If ctx is done it has
// been closed, and Scope waits for the task that runs. Tasks that were queued or due and
// never ran, because ctx or the pool has ended, because the pool refused them while the
// worker was drained, or because of [CloseOnPanic], are an error of the scope; what Close
// and CancelPending drop is none. The turns of workers and exit hooks come in the reverse
// of the order in which they were made: make the last stage of a pipeline first. A scope
// with async.DetachAfter does not wait for ever, and names the workers whose tasks still
// run.
//
// NewWorker does not block. A worker of a closed scheduler or an ended scope is closed
// from the first. A nil ctx panics.
func (s *Scheduler) NewWorker(ctx context.Context, opts ...WorkerOption) *ExecutorWorker {
	if ctx == nil {
		panic("scheduler: NewWorker with a nil context: pass context.Background()")
	}
	w := &ExecutorWorker{o: s.o.workerOptions, pool: s.o.pool}
	for _, o := range opts {
		o.applyWorker(&w.o)
	}
	if w.o.name == "" {
		w.o.name = "worker"
	}
	w.q.owner = w
	w.d, w.vertex.d, w.vertex.name = &s.d, &s.d, w.o.name
	w.seat.init(w)
	w.room = capacity{most: w.o.capacity, full: w.o.full}
	w.ctx, w.stop = context.WithCancelCause(context.WithValue(ctx, workerKey{w}, true))
	w.scope = bridge.ScopeOf(ctx)
	if ctx.Done() != nil {
		w.outer = ctx
	}
	if !s.d.add(w) {
		_ = w.Close()
		return w
	}
	w.endWithScope()
	w.watch()
	return w
}

// close refuses new workers and returns those there are.
func (s *Scheduler) close() []*ExecutorWorker {
	s.d.close()
	return s.workers()
}

func (s *Scheduler) workers() (all []*ExecutorWorker) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	for w := range s.d.workers {
		all = append(all, w.(*ExecutorWorker))
	}
	return all
}

// Close closes every worker, as [ExecutorWorker.Close] does, and refuses new ones: they
// are closed from the first.
//
//	_ = s.Close()
//
// # Details
//
// Close does not block and returns nil.
func (s *Scheduler) Close() error {
	for _, w := range s.close() {
		_ = w.Close()
	}
	return nil
}

// Drain drains every worker, all at once, as [ExecutorWorker.Drain] does, and refuses new
// ones.
//
//	err := s.Drain(ctx) // then the pool may be ended
//
// # Details
//
// Drain blocks until all have ended and the scheduler uses the pool no more, so that the
// pool may be waited for and ended; after Close, too, this is the way to know. If ctx is
// done before, Drain closes the workers and returns the cause. Otherwise it returns nil,
// or the error of a worker whose drain was cut short. With the ctx of a task of one of
// the workers it returns an error, as [ExecutorWorker.Drain] does, and does nothing.
// Workers refuse new tasks from the first, also those that tasks of others would
// schedule.
func (s *Scheduler) Drain(ctx context.Context) error {
	all := s.workers()
	for _, w := range all {
		left, err := w.mayWait(ctx)
		if err != nil {
			return err
		}
		defer left()
	}
	all = s.close()
	before := make([]error, len(all))
	for i, w := range all {
		before[i] = w.startDraining()
	}
	var first error
	for i, w := range all {
		if err := w.drained(ctx, before[i]); err != nil && first == nil {
			first = err
		}
	}
	if err := s.d.waitUnused(ctx); first == nil {
		first = err
	}
	return first
}

// poolEnded rejects what the pool, whose ctx is done, will never run.
func (s *Scheduler) poolEnded() {
	for _, w := range s.close() {
		w.noticeEnd()
	}
}

// SchedulerStats are counts of a scheduler.
type SchedulerStats struct {
	Workers     int    // that are open, or whose last task runs
	Ready       int    // that wait for a goroutine of the pool
	Submissions uint64 // made to the pool
	Refusals    uint64 // by the pool
}

// Stats returns the counts. It does not block.
func (s *Scheduler) Stats() SchedulerStats {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	q := &s.d.q
	return SchedulerStats{
		Workers: len(s.d.workers), Ready: q.ready.length,
		Submissions: q.submissions, Refusals: q.refusals,
	}
}
