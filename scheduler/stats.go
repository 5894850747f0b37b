package scheduler

// Stats are counts of a worker. Scheduled is the sum of the outcomes, Pending,
// and 1 if a task runs.
type Stats struct {
	Scheduled   uint64 // tasks that were accepted
	Done        uint64
	Cancelled   uint64
	Rejected    uint64
	Panicked    uint64
	Exited      uint64
	Pending     int // queued, delayed and periodic
	Delayed     int // of these, not due yet
	Running     bool
	Ticks       uint64 // runs of periodic tasks that have returned
	Activations uint64 // how often a goroutine of the pool has come for it
}

// Stats returns the counts, as of one instant. It does not block.
func (w *ExecutorWorker) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := w.q.ended
	st := Stats{Scheduled: w.q.seq, Delayed: len(w.q.heap), Ticks: w.ticks, Activations: w.activated}
	st.Pending, st.Running = w.q.snapshot(&counts)
	st.Done, st.Cancelled, st.Rejected = counts[Done], counts[Cancelled], counts[Rejected]
	st.Panicked, st.Exited = counts[Panicked], counts[Exited]
	return st
}
