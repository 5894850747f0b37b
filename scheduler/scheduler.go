package scheduler

import (
	"context"
	"maps"
	"slices"
)

// A Scheduler makes workers that share a pool. Any number of goroutines may use
// it. Closing it never touches the pool.
type Scheduler struct {
	ex     Executor
	try    func(task func()) bool // nil: the pool has no TryExecute
	inline bool                   // the pool is Inline
	o      schedulerOptions
	run    func() // serve, as a value that was made once

	mu      mutex // guards what follows; never held with a worker's mu
	workers map[*ExecutorWorker]struct{}

	// ready are the workers that wait for a goroutine, in order. While there is
	// one, somebody will come by: serving or promised is more than 0, or the
	// feeder has a submission to make.
	ready line
	// unasked are those of ready for which the feeder has made no submission
	// yet, and is to.
	unasked  line
	wanted   int  // submissions that the feeder has to make
	feeding  bool // there is a feeder
	promised int  // submissions that the pool has accepted, or is looking at, and has not begun
	serving  int  // goroutines that are in serve

	using       int           // goroutines that call the pool's methods, the feeder included
	unused      chan struct{} // closed when there are none; nil if nobody waits
	closed      bool
	unwatchPool func() bool // ends the look at the pool's context; nil if there is none
	submissions uint64
	refusals    uint64
}

// New returns a scheduler for the pool ex. Nil panics.
func New(ex Executor, opts ...Option) *Scheduler {
	if ex == nil {
		panic("scheduler: New(nil): use Goroutines() if there is no pool")
	}
	s := &Scheduler{ex: ex, workers: make(map[*ExecutorWorker]struct{})}
	s.o.batch = defaultBatch
	for _, o := range opts {
		o.applyScheduler(&s.o)
	}
	if t, ok := ex.(tryExecutor); ok {
		s.try = t.TryExecute
	}
	_, s.inline = ex.(inline)
	s.run = s.serve
	if ctx := s.o.pool; ctx != nil {
		unwatch := context.AfterFunc(ctx, s.poolEnded)
		s.mu.Lock()
		s.unwatchPool = unwatch
		s.mu.Unlock()
	}
	return s
}

// add registers w; false if s is closed.
func (s *Scheduler) add(w *ExecutorWorker) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.workers[w] = struct{}{}
	return true
}

// remove forgets w, which has ended.
func (s *Scheduler) remove(w *ExecutorWorker) {
	s.mu.Lock()
	delete(s.workers, w)
	s.ready.remove(&w.turn)
	s.unasked.remove(&w.unasked)
	s.unwatchLocked()
	s.mu.Unlock()
}

// unwatchLocked looks no longer at the pool's end if nobody is left that has to
// be told: until then a worker that drains may still wait for the pool.
func (s *Scheduler) unwatchLocked() {
	if s.unwatchPool != nil && s.overLocked() {
		s.unwatchPool()
	}
}

// overLocked reports that s has no workers and never will have.
func (s *Scheduler) overLocked() bool { return s.closed && len(s.workers) == 0 }

// close refuses new workers and returns those there are.
func (s *Scheduler) close() []*ExecutorWorker {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.unwatchLocked()
	return slices.Collect(maps.Keys(s.workers))
}

// Close closes every worker, as [ExecutorWorker.Close] does, and refuses new
// ones: they are closed from the first. It does not block and returns nil.
func (s *Scheduler) Close() error {
	for _, w := range s.close() {
		_ = w.Close()
	}
	return nil
}

// Drain drains every worker, all at once, as [ExecutorWorker.Drain] does, and
// refuses new ones. It blocks until all have ended and the scheduler uses the
// pool no more, so that the pool may be waited for and ended; after Close, too,
// this is the way to know. If ctx is done before, Drain closes the workers and
// returns the cause. Otherwise it returns nil, or the error of a worker whose
// drain was cut short. With the ctx of a task of one of the workers it
// returns [ErrSelfWait] and does nothing. Workers refuse new tasks from the
// first, also those that tasks of others would schedule.
func (s *Scheduler) Drain(ctx context.Context) error {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.workers))
	s.mu.Unlock()
	if slices.ContainsFunc(all, func(w *ExecutorWorker) bool { return InWorker(ctx, w) }) {
		return ErrSelfWait
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
	if err := s.waitUnused(ctx); first == nil {
		first = err
	}
	return first
}

// waitUnused blocks until no goroutine calls the pool, or returns the cause of
// ctx when that is done before.
func (s *Scheduler) waitUnused(ctx context.Context) error {
	s.mu.Lock()
	if s.using == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.unused == nil {
		s.unused = make(chan struct{})
	}
	unused := s.unused
	s.mu.Unlock()
	return waitFor(unused, ctx)
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
	s.mu.Lock()
	defer s.mu.Unlock()
	return SchedulerStats{Workers: len(s.workers), Ready: s.ready.length, Submissions: s.submissions, Refusals: s.refusals}
}
