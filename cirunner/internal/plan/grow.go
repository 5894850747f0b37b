package plan

// Add adds the jobs of a child pipeline whose parent is Running, behind all others. After a
// Stop they are Canceled, after GiveUp all of them are, except those that start after a failure, too.
func (p *Plan) Add(jobs []Job) []Change {
	p.jobs = append(p.jobs, jobs...)
	p.state = append(p.state, make([]State, len(jobs))...)
	p.attempts = append(p.attempts, make([]int, len(jobs))...)
	p.settle()
	if p.stopped != "" {
		p.cancel(p.stopped)
	} else if p.givenUp != "" {
		p.cancel(p.givenUp)
	}
	return p.take()
}
