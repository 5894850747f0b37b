package plan

import (
	"fmt"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// A Change is a job's new state, and why.
type Change struct {
	Job   int
	State State
	Why   string // for a job that does not run: what it would have needed
}

// A Plan is a pipeline under way.
type Plan struct {
	jobs     []Job
	state    []State
	attempts []int
	holder   map[int]string // the manual jobs that hold up those that are Blocked
	stopped  string
	givenUp  string
	changes  []Change
}

// New returns the plan of a pipeline, and the state that each job begins with.
// It panics if a job needs one that does not exist: the parser has said so.
func New(jobs []Job) (*Plan, []Change) {
	p := &Plan{jobs: jobs, state: make([]State, len(jobs)), attempts: make([]int, len(jobs)), holder: make(map[int]string)}
	for i := range jobs {
		for _, n := range jobs[i].Needs {
			if n < 0 || n >= len(jobs) {
				panic(fmt.Sprintf("plan: job %q needs job %d of %d", jobs[i].Name, n, len(jobs)))
			}
		}
	}
	p.settle()
	return p, p.take()
}

// Take takes a job that is Ready, which from then on is Running, and returns which
// attempt at it this is. It reports false if the job is not Ready any more, because
// the pipeline was stopped.
//
// The plan does not say which of several is next. Whoever takes them in the order in
// which they have become Ready, the one further up in the file first, lets no job wait
// for ever: an attempt that is made again comes after what was Ready before.
func (p *Plan) Take(job int) (attempt int, ok bool) {
	if p.state[job] != Ready {
		return 0, false
	}
	p.move(job, Running, "")
	p.changes = nil // the caller knows
	p.attempts[job]++
	return p.attempts[job], true
}

// Ended takes note of how the job that is Running ended, and returns what has
// changed: its own state first, then those of jobs that waited for it.
func (p *Plan) Ended(job int, o Outcome) []Change {
	j := &p.jobs[job]
	switch {
	case o.OK():
		p.move(job, Succeeded, "")
	case o.Cause == Stopped:
		p.move(job, Canceled, o.Text)
	case p.starts(job) && p.attempts[job] <= j.Retry.Max && j.Retry.Again(o.Cause, o.ExitCode):
		p.move(job, Ready, o.Text)
	case j.allows(o):
		p.move(job, Warned, o.Text)
	default:
		p.move(job, Failed, o.Text)
	}
	p.settle()
	return p.take()
}

// Stop lets no job start from now on: those that have not are Canceled. Jobs
// that are Running go on. Only the first call has an effect.
func (p *Plan) Stop(why string) []Change {
	if p.stopped == "" {
		p.stopped = why
		p.cancel(why)
	}
	return p.take()
}

// GiveUp lets no job start from now on but those for after a failure, and those that run
// always. Only the first call has an effect.
func (p *Plan) GiveUp(why string) []Change {
	if p.givenUp == "" && p.stopped == "" {
		p.givenUp = why
		p.cancel(why)
		p.settle() // those for after a failure may have waited for what is canceled
	}
	return p.take()
}

// cancel cancels the jobs that have not started and are not to.
func (p *Plan) cancel(why string) {
	for i, s := range p.state {
		if s < Running && !p.starts(i) {
			p.move(i, Canceled, why)
		}
	}
}

// starts reports whether a job may still be started, as far as stops are concerned.
func (p *Plan) starts(i int) bool {
	when := p.jobs[i].When
	return p.stopped == "" && (p.givenUp == "" || when == pipeline.OnFailure || when == pipeline.Always)
}

// State returns the state of a job.
func (p *Plan) State(job int) State { return p.state[job] }

// Attempts returns how often a job has been taken.
func (p *Plan) Attempts(job int) int { return p.attempts[job] }

// Stopped reports whether no job starts any more.
func (p *Plan) Stopped() bool { return p.stopped != "" }

// Done reports whether every job has come to its end.
func (p *Plan) Done() bool {
	for _, s := range p.state {
		if !s.Final() {
			return false
		}
	}
	return true
}

// settle decides on waiting jobs until there is nothing more to decide: a job
// that is skipped may decide on another.
func (p *Plan) settle() {
	for again := true; again; {
		again = false
		for i, s := range p.state {
			switch {
			case s == Waiting && p.decide(i):
				again = true
			case s == Locked && p.holderOf(i) == "":
				p.move(i, Ready, "")
			}
		}
		again = p.untangle() || again
	}
}

// untangle fails a job that waits for a group in a ring of waits: nothing runs or will, and the group is that of a
// pipeline of which a job waits likewise. It reports whether there was one; others may have their group by that.
func (p *Plan) untangle() bool {
	first := -1
	for i, s := range p.state {
		switch {
		case s == Delayed || s == Ready || s == Running:
			return false
		case s == Locked && first < 0:
			first = i
		}
	}
	if first < 0 || p.holderOf(first) == "" {
		return false
	}
	why := fmt.Sprintf("would wait for ever for the resource_group %s: the pipeline of %q has it, and waits for this one", p.jobs[first].Group, p.holderOf(first))
	if p.jobs[first].allows(Outcome{Cause: pipeline.SystemFailure}) {
		p.move(first, Warned, why)
	} else {
		p.move(first, Failed, why)
	}
	return true
}

// decide moves a waiting job on if what it waits for has ended.
func (p *Plan) decide(i int) bool {
	if parent := p.jobs[i].Parent - 1; parent >= 0 && p.state[parent] != Succeeded {
		if p.state[parent].Final() {
			p.move(i, Skipped, fmt.Sprintf("%q has not started its pipeline", p.jobs[parent].Name))
		}
		return p.state[parent].Final()
	}
	before := p.before(i)
	if !before.ended {
		return false
	}
	switch why := before.forbids(&p.jobs[i]); {
	case before.held != "":
		p.holder[i] = before.held
		p.move(i, Blocked, fmt.Sprintf("waits for the manual job %q", before.held))
	case why != "":
		p.move(i, Skipped, why)
	case p.jobs[i].When == pipeline.Manual && !p.jobs[i].Asked:
		p.move(i, Manual, "runs only when asked for")
	case p.jobs[i].When == pipeline.Delayed:
		p.move(i, Delayed, "")
	default:
		p.ready(i)
	}
	return true
}

// Due makes a job Ready that was Delayed, or Locked. It has no effect on a job that
// is Canceled meanwhile.
func (p *Plan) Due(job int) []Change {
	if p.state[job] == Delayed {
		p.ready(job)
		if p.untangle() {
			p.settle()
		}
	}
	return p.take()
}

// ready makes a job Ready, or Locked as long as another has its group.
func (p *Plan) ready(i int) {
	if holder := p.holderOf(i); holder != "" {
		p.move(i, Locked, fmt.Sprintf("waits for %q, which has the same resource_group", holder))
		return
	}
	p.move(i, Ready, "")
}

// holderOf returns the job that has the group of another: it is Ready or Running, or the pipeline is under way that
// it has started and is waited for with it. The jobs of that pipeline may have the group, too.
func (p *Plan) holderOf(i int) string {
	group := p.jobs[i].Group
	for k := range p.jobs {
		if group == "" || k == i || p.jobs[k].Group != group || p.descends(i, k) {
			continue
		}
		if p.state[k] == Ready || p.state[k] == Running || p.jobs[k].Depend && p.state[k] == Succeeded && !p.Over(k) {
			return p.jobs[k].Name
		}
	}
	return ""
}

// descends reports whether a job is in the pipeline that another has started, or in a pipeline that one of its jobs
// has started.
func (p *Plan) descends(i, of int) bool {
	for parent := p.jobs[i].Parent - 1; parent >= 0; parent = p.jobs[parent].Parent - 1 {
		if parent == of {
			return true
		}
	}
	return false
}

// Over reports whether a job has come to its end, and the pipeline that it has started, too.
func (p *Plan) Over(k int) bool {
	for i, s := range p.state {
		if !s.Final() && (i == k || p.descends(i, k)) {
			return false
		}
	}
	return true
}

// legal are the transitions that exist.
var legal = map[[2]State]bool{
	{Waiting, Ready}: true, {Waiting, Skipped}: true, {Waiting, Manual}: true, {Waiting, Blocked}: true, {Waiting, Canceled}: true,
	{Waiting, Delayed}: true, {Delayed, Ready}: true, {Delayed, Canceled}: true,
	{Waiting, Locked}: true, {Delayed, Locked}: true, {Locked, Ready}: true, {Locked, Canceled}: true,
	{Locked, Failed}: true, {Locked, Warned}: true,
	{Ready, Running}: true, {Ready, Canceled}: true,
	{Running, Ready}: true, {Running, Succeeded}: true, {Running, Failed}: true, {Running, Warned}: true, {Running, Canceled}: true,
}

// move is the only place where a state changes.
func (p *Plan) move(i int, to State, why string) {
	from := p.state[i]
	if !legal[[2]State{from, to}] {
		panic(fmt.Sprintf("plan: invalid transition of %q [%v -> %v]", p.jobs[i].Name, from, to))
	}
	p.state[i] = to
	p.changes = append(p.changes, Change{i, to, why})
}

func (p *Plan) take() []Change {
	c := p.changes
	p.changes = nil
	return c
}
