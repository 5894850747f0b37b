package scheduler_test

import (
	"errors"

	"github.com/ambit-go/ambit/scheduler"
)

// check is called when all has ended.
func (r *progRun) check(s *scheduler.Scheduler) {
	if st := s.Stats(); st.Workers != 0 || st.Ready != 0 {
		r.fault("left at the scheduler: %+v", st)
	}
	accepted, ran := make(map[*progWorker]uint64), make(map[*progWorker]uint64)
	for _, p := range r.tasks {
		if p.err == nil {
			accepted[p.w]++
		}
		st, runs := p.handle.State(), p.ran.Load()
		ended := st == scheduler.Done || st == scheduler.Panicked || st == scheduler.Exited
		switch {
		case p.err != nil:
			if runs > 0 || !errors.Is(p.err, scheduler.ErrClosed) && !errors.Is(p.err, scheduler.ErrFull) {
				r.fault("not accepted: %v; ran %d times", p.err, runs)
			}
		case p.post:
			if ran[p.w] += uint64(runs); runs > 1 {
				r.fault("a post ran %d times", runs)
			}
		case st <= scheduler.Running || p.cancelled && st != scheduler.Cancelled:
			r.fault("a task is %v in the end, cancelled %v", st, p.cancelled)
		case p.every:
			if st == scheduler.Done {
				r.fault("a periodic task is done")
			}
			if ended {
				ran[p.w]++
			}
		case ended && runs != 1 || !ended && runs != 0:
			r.fault("a task is %v and ran %d times", st, runs)
		case ended:
			ran[p.w]++
		}
	}
	for _, w := range r.workers {
		r.checkWorker(w, accepted[w], ran[w])
	}
}

func (r *progRun) checkWorker(w *progWorker, accepted, ran uint64) {
	st := w.w.Stats()
	if st.Pending != 0 || st.Delayed != 0 || st.Running || w.w.Len() != 0 ||
		st.Scheduled != st.Done+st.Cancelled+st.Rejected+st.Panicked+st.Exited {
		r.fault("in the end: %+v", st)
	}
	futures := uint64(w.submit.Load())
	if st.Scheduled < accepted || st.Scheduled > accepted+futures {
		r.fault("%d tasks and at most %d futures were accepted, %+v", accepted, futures, st)
	}
	if sum := st.Done + st.Panicked + st.Exited; sum < ran || sum > ran+futures {
		r.fault("%d tasks and at most %d futures ran, %+v", ran, futures, st)
	}
	if !w.seen {
		return
	}
	for outcome, want := range map[scheduler.State]uint64{
		scheduler.Done: st.Done, scheduler.Cancelled: st.Cancelled, scheduler.Rejected: st.Rejected,
		scheduler.Panicked: st.Panicked, scheduler.Exited: st.Exited,
	} {
		if got := uint64(w.events[outcome].Load()); got != want {
			r.fault("%d events of tasks that are %v, %d such tasks", got, outcome, want)
		}
	}
}
