package plan

// A queue runs a plan as a runner does: jobs that are Ready in the order in which they
// have become so.
type queue struct {
	*Plan
	ready []int
}

func begin(jobs []Job) (*queue, []Change) {
	p, changes := New(jobs)
	q := &queue{Plan: p}
	return q, q.follow(changes)
}

func (q *queue) follow(changes []Change) []Change {
	for _, c := range changes {
		if c.State == Ready {
			q.ready = append(q.ready, c.Job)
		}
	}
	return changes
}

func (q *queue) Ended(job int, o Outcome) []Change { return q.follow(q.Plan.Ended(job, o)) }
func (q *queue) Due(job int) []Change              { return q.follow(q.Plan.Due(job)) }

// next takes the first of them.
func (q *queue) next() (job, attempt int, ok bool) {
	if len(q.ready) == 0 {
		return 0, 0, false
	}
	job, q.ready = q.ready[0], q.ready[1:]
	attempt, ok = q.Take(job)
	return job, attempt, ok
}
