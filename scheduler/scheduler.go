package scheduler

import (
	"context"
	"maps"
	"slices"
	"time"
)

// A Scheduler makes workers that share a pool. Any number of goroutines may use
// it. Closing it never touches the pool.
type Scheduler struct {
	ex     Executor
	try    func(task func()) bool // nil: the pool has none
	inline bool
	o      schedulerOptions
	run    func() // serve, as a value that was made once

	mu          mutex // guards what follows; never held with a worker's mu
	workers     map[*ExecutorWorker]struct{}
	ready       *ExecutorWorker // wait for a goroutine, in order, linked by nextReady
	lastReady   *ExecutorWorker
	wanted      int           // submissions that the feeder has to make
	feeding     bool          // there is a feeder
	serving     bool          // somebody serves; only if inline
	touching    int           // goroutines that use the pool's methods, the feeder included
	untouched   chan struct{} // closed when there are none; nil if nobody waits
	closed      bool
	left        func() bool // ends the look at the pool's context; nil if there is none
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
		left := context.AfterFunc(ctx, func() { s.poolEnded(context.Cause(ctx)) })
		s.mu.Lock()
		s.left = left
		s.mu.Unlock()
	}
	return s
}

// need is called for a worker that was idle and has something to do.
func (s *Scheduler) need(w *ExecutorWorker) {
	s.mu.Lock()
	s.queueLocked(w)
	if s.inline {
		if s.serving {
			s.mu.Unlock()
			return // who serves comes by
		}
		s.submissions++
		s.mu.Unlock()
		s.serve()
		return
	}
	s.mu.Unlock()
	if !s.offer() {
		s.feed(1)
	}
}

func (s *Scheduler) queueLocked(w *ExecutorWorker) {
	if s.lastReady == nil {
		s.ready = w
	} else {
		s.lastReady.nextReady = w
	}
	s.lastReady = w
}

// next returns the worker that has waited longest for a goroutine, nil if there
// is none.
func (s *Scheduler) next() *ExecutorWorker {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.ready
	if w == nil {
		s.serving = false
		return nil
	}
	if s.ready, w.nextReady = w.nextReady, nil; s.ready == nil {
		s.lastReady = nil
	}
	return w
}

// offer makes a submission that does not block, if the pool takes one.
func (s *Scheduler) offer() bool {
	if s.try == nil || s.inline {
		return false
	}
	s.mu.Lock()
	if s.closed && len(s.workers) == 0 { // nobody is left to submit for
		s.ready, s.lastReady = nil, nil
		s.mu.Unlock()
		return false
	}
	s.touching++
	s.mu.Unlock()
	taken, returned := false, false
	defer func() {
		s.mu.Lock()
		if taken {
			s.submissions++
		}
		s.leaveLocked()
		s.mu.Unlock()
		if !returned { // it panicked: nobody is wedged for that
			s.feed(1)
		}
	}()
	taken = s.try(s.run)
	returned = true
	return taken
}

// leaveLocked notes that a goroutine uses the pool no more.
func (s *Scheduler) leaveLocked() {
	s.touching--
	if s.touching == 0 && s.untouched != nil {
		close(s.untouched)
		s.untouched = nil
	}
}

// waitUntouched blocks until nobody uses the pool, or returns the cause of ctx
// when that is done before.
func (s *Scheduler) waitUntouched(ctx context.Context) error {
	s.mu.Lock()
	if s.touching == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.untouched == nil {
		s.untouched = make(chan struct{})
	}
	untouched := s.untouched
	s.mu.Unlock()
	select {
	case <-untouched:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// feed has n more submissions made that may block, by the one goroutine of the
// scheduler that does so.
func (s *Scheduler) feed(n int) {
	s.mu.Lock()
	s.wanted += n
	start := !s.feeding && s.wanted > 0
	if start {
		s.feeding = true
		s.touching++
	}
	s.mu.Unlock()
	if start {
		go s.feeder()
	}
}

// feeder makes submissions until no more are wanted.
func (s *Scheduler) feeder() {
	defer func() { // a pool that runs tasks on our goroutine may have ended it
		s.mu.Lock()
		s.feeding = false
		again := s.wanted > 0
		if again {
			s.touching++ // nobody is told that there is none meanwhile
		}
		s.leaveLocked()
		s.mu.Unlock()
		if again {
			s.feed(0)
			s.mu.Lock()
			s.leaveLocked()
			s.mu.Unlock()
		}
	}()
	for {
		s.mu.Lock()
		if s.closed && len(s.workers) == 0 {
			s.wanted = 0 // nobody is left to submit for
		}
		if s.wanted == 0 {
			s.mu.Unlock()
			return
		}
		s.wanted--
		idle := s.ready == nil
		if !idle {
			s.submissions++
		}
		s.mu.Unlock()
		if idle {
			continue // somebody was faster
		}
		if err := s.ex.Execute(s.run); err != nil {
			s.refused(err)
		}
	}
}

// refused deals with an error of the pool: the worker that has waited longest
// is the one that was refused. What it has queued is rejected; it works again
// when the pool does.
func (s *Scheduler) refused(err error) {
	s.mu.Lock()
	s.refusals++
	s.mu.Unlock()
	if w := s.next(); w != nil {
		w.refused(err)
	}
}

// serve is what the pool runs: it drains the workers that are ready. After a
// worker's batch it offers the goroutine back; if the pool cannot take the
// rest now, it goes on with the next worker.
func (s *Scheduler) serve() {
	if s.inline {
		s.mu.Lock()
		busy := s.serving
		s.serving = true
		s.mu.Unlock()
		if busy {
			return
		}
	}
	clean := false
	defer func() {
		if clean {
			return
		}
		// A panic or Goexit takes this goroutine. Not from here: the pool may be full.
		s.mu.Lock()
		s.serving = false
		rest := s.ready != nil
		s.mu.Unlock()
		if rest {
			s.feed(1)
		}
	}()
	for w := s.next(); w != nil; w = s.next() {
		if !w.drain() {
			continue
		}
		s.mu.Lock()
		s.queueLocked(w)
		s.mu.Unlock()
		if s.offer() {
			break
		}
	}
	clean = true
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

func (s *Scheduler) remove(w *ExecutorWorker) {
	s.mu.Lock()
	delete(s.workers, w)
	s.unbindLocked()
	s.mu.Unlock()
}

// unbindLocked looks no longer at the pool's end if nobody is left that has to
// be told: until then a worker that drains may still wait for the pool.
func (s *Scheduler) unbindLocked() {
	if s.left != nil && s.closed && len(s.workers) == 0 {
		s.left()
	}
}

// close refuses new workers and returns those there are.
func (s *Scheduler) close() []*ExecutorWorker {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.unbindLocked()
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
// pool no more, so that it may be waited for and ended; after Close, too, this
// is the way to know. If ctx is done before, Drain closes the workers and
// returns the cause. With the ctx of a task of one of them it returns
// [ErrSelfWait] and does nothing. Workers refuse new tasks from the first, also
// those that tasks of others would schedule.
func (s *Scheduler) Drain(ctx context.Context) error {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.workers))
	s.mu.Unlock()
	if slices.ContainsFunc(all, func(w *ExecutorWorker) bool { return InWorker(ctx, w) }) {
		return ErrSelfWait
	}
	all = s.close()
	for _, w := range all {
		w.refuse()
	}
	var first error
	for _, w := range all {
		if err := w.Drain(ctx); err != nil && first == nil {
			first = err
		}
	}
	if first == nil {
		first = s.waitUntouched(ctx)
	}
	return first
}

// poolEnded rejects what the pool will never run.
func (s *Scheduler) poolEnded(cause error) {
	for _, w := range s.close() {
		w.poolEnded(cause)
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
	st := SchedulerStats{Workers: len(s.workers), Submissions: s.submissions, Refusals: s.refusals}
	for w := s.ready; w != nil; w = w.nextReady {
		st.Ready++
	}
	return st
}

// epoch is when our clock began.
var epoch = time.Now()

func clock() time.Duration { return time.Since(epoch) }
