package scheduler

// This file is how workers get goroutines of the pool. What the pool runs is not
// bound to a worker: it takes whichever has waited longest.
//
// A worker that waits is on the line ready, and a goroutine is to come by for it:
// one that is in serve, one that the pool has promised, or the feeder, which is to
// make a submission. These are counted under the lock that guards the line:
//
//	serving   goroutines of the pool that are in serve
//	promised  submissions that the pool has accepted and not begun, or is asked for
//	wanted    submissions that the feeder is still to make
//	using     goroutines of ours that are in a call of the pool
//
// While the line is not empty one of the first three is above 0, or the feeder is
// about to look at the line. When a
// goroutine leaves because the line is empty, or a submission is refused, a worker
// may come at the same time. The lock orders the two: the worker comes before, and
// is seen, or after, and makes a submission of its own. No worker is forgotten.

// makeReady is called for a worker that was idle and has something to do. Its caller
// has set w.active, so it is called once until w is idle again. No lock is held.
func (s *Scheduler) makeReady(w *ExecutorWorker) {
	s.mu.Lock()
	if s.overLocked() { // w was closed a moment ago
		s.mu.Unlock()
		return
	}
	s.ready.add(&w.turn)
	// From here on another goroutine may drain w. The pool is never called with the
	// lock held: it may run a task at once, which schedules on another worker.
	switch {
	case s.inline && s.serving > 0:
		s.mu.Unlock() // the goroutine that serves comes by
	case s.inline:
		s.submissions++
		s.promised++
		s.mu.Unlock()
		s.serve()
	case s.try == nil:
		s.unasked.add(&w.unasked)
		s.feedLocked(1)
		s.mu.Unlock()
	default:
		s.promised++
		s.using++
		s.mu.Unlock()
		s.offer(w)
	}
}

// offer makes a submission for w that does not block. If the pool does not take
// it the feeder makes one that may. s.promised and s.using count it already.
func (s *Scheduler) offer(w *ExecutorWorker) {
	taken := false
	defer func() { // also if the pool panics: nobody is wedged for that
		s.mu.Lock()
		s.offeredLocked(taken)
		if !taken && w.turn.inLine {
			s.unasked.add(&w.unasked)
			s.feedLocked(1)
		}
		s.mu.Unlock()
	}()
	taken = s.try(s.run)
}

// offeredLocked counts an offer that the pool has taken or not.
func (s *Scheduler) offeredLocked(taken bool) {
	if taken {
		s.submissions++
	} else {
		s.withdrawPromiseLocked()
	}
	s.stopUsingLocked()
}

// withdrawPromiseLocked counts a submission out that the pool has not accepted.
func (s *Scheduler) withdrawPromiseLocked() {
	s.promised = max(s.promised-1, 0) // a pool may have run what it says that it refused
}

// stopUsingLocked notes that a goroutine has come back from the pool.
func (s *Scheduler) stopUsingLocked() {
	s.using--
	if s.using == 0 && s.unused != nil {
		close(s.unused)
		s.unused = nil
	}
}

// feedLocked has n more submissions made that may block, by the feeder: the one
// goroutine of the scheduler that does so.
func (s *Scheduler) feedLocked(n int) {
	s.wanted += n
	if !s.feeding {
		s.feeding = true
		s.using++
		go s.feed()
	}
}

// feed is the feeder. It makes submissions until no more are wanted.
func (s *Scheduler) feed() {
	// If the pool runs tasks on the goroutine that submits them, one of them may end
	// this goroutine, by Goexit. Another feeder goes on then.
	defer func() {
		s.mu.Lock()
		s.feeding = false
		if s.wanted > 0 {
			s.feedLocked(0)
		}
		s.stopUsingLocked()
		s.mu.Unlock()
	}()
	for w := s.nextToSubmit(); w != nil; w = s.nextToSubmit() {
		if err := s.ex.Execute(s.run); err != nil {
			s.refused(w, err)
		}
	}
}

// nextToSubmit returns the worker for which the feeder is to make a submission,
// nil if none is to be made.
func (s *Scheduler) nextToSubmit() *ExecutorWorker {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Nobody may come though nothing is wanted: a worker was refused while a
	// goroutine was there for it to wait for, and that has died since.
	nobodyComes := s.promised+s.serving == 0
	if s.ready.first == nil || s.overLocked() || s.wanted == 0 && !nobodyComes {
		s.wanted = 0 // somebody was faster
		return nil
	}
	s.wanted = max(s.wanted-1, 0)
	first := s.unasked.first
	if first == nil {
		first = s.ready.first // it waits for a turn, and the one that was asked for has come
	}
	w := first.w
	s.unasked.remove(&w.unasked)
	s.submissions++
	s.promised++
	return w
}

// refused deals with an error of the pool, to which a submission was made for
// w. While a goroutine of the scheduler is in the pool or promised, w waits for
// that one. Otherwise what w has queued is rejected, and nobody else's.
func (s *Scheduler) refused(w *ExecutorWorker, err error) {
	// Counted out and looked at in one step: a goroutine that is about to leave has
	// found the line empty before, without w, or finds w in it.
	s.mu.Lock()
	s.refusals++
	s.withdrawPromiseLocked()
	alone := s.promised+s.serving == 0 && w.turn.inLine
	if alone {
		s.leaveLineLocked(w)
	}
	s.mu.Unlock()
	if alone {
		w.refused(err)
	}
}

// leaveLineLocked takes w off the workers that wait. Whether it was on one of the
// lines or on both makes no difference.
func (s *Scheduler) leaveLineLocked(w *ExecutorWorker) {
	s.ready.remove(&w.turn)
	s.unasked.remove(&w.unasked)
}

// nextLocked takes the worker that has waited longest. If there is none, the
// goroutine of the pool that asks has nothing to do and is counted out.
func (s *Scheduler) nextLocked() *ExecutorWorker {
	if s.ready.first == nil {
		s.serving--
		return nil
	}
	w := s.ready.first.w
	s.leaveLineLocked(w)
	return w
}

// serve is what the pool runs: it drains the workers that are ready. After a
// worker's batch it offers the goroutine back; if the pool cannot take the
// rest now, it goes on with the next worker.
func (s *Scheduler) serve() {
	s.mu.Lock()
	s.withdrawPromiseLocked() // it is kept
	// An inline pool runs us below a task of ours on the stack: the serve that runs
	// this task goes on with the line when the task has returned.
	if s.inline && s.serving > 0 {
		s.mu.Unlock()
		return
	}
	s.serving++
	w := s.nextLocked()
	s.mu.Unlock()
	clean := false // a worker's task has not taken this goroutine with it
	defer func() {
		if !clean {
			s.died()
		}
	}()
	for w != nil {
		if w.onPool() {
			w = s.handBack(w)
			continue
		}
		s.mu.Lock()
		w = s.nextLocked()
		s.mu.Unlock()
	}
	clean = true
}

// died is called when a panic or Goexit takes a goroutine of the pool. The rest
// is for another one. It is not asked for from here: the pool may be full, and
// this goroutine is still one of it.
func (s *Scheduler) died() {
	s.mu.Lock()
	s.serving--
	if s.ready.first != nil {
		s.feedLocked(1)
	}
	s.mu.Unlock()
}

// handBack puts w, which has had its share, at the end of the line and offers
// the goroutine back to the pool. If the pool cannot take the rest now, it
// returns the worker to go on with; otherwise nil.
func (s *Scheduler) handBack(w *ExecutorWorker) *ExecutorWorker {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready.add(&w.turn)
	if s.try != nil && !s.inline && !s.overLocked() && s.tryLocked() {
		s.serving--
		return nil
	}
	return s.nextLocked()
}

// tryLocked offers the pool a submission, without the lock, and reports whether
// the pool has taken it.
func (s *Scheduler) tryLocked() (taken bool) {
	s.promised++
	s.using++
	s.mu.Unlock()
	defer func() { // also if the pool panics
		s.mu.Lock()
		s.offeredLocked(taken)
	}()
	return s.try(s.run)
}

// backInLine puts w, whose goroutine is about to die, at the end of the line. died,
// which follows on this goroutine, sees to it that another one comes.
func (s *Scheduler) backInLine(w *ExecutorWorker) {
	s.mu.Lock()
	s.ready.add(&w.turn)
	s.mu.Unlock()
}
