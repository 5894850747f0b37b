package plan

import (
	"fmt"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// before is the sum of what a job waits for.
type before struct {
	ended  bool   // all of it
	failed string // a job that failed and was not allowed to
	unrun  string // a needed job that did not run
	held   string // a manual job that holds up what follows, and this one too
	needs  bool   // the job has named what it waits for
}

// before sums up what a job waits for. A job that names its needs looks only at
// those, and wants them to have run. One that does not looks at the stages
// before its own, where jobs that were skipped count for nothing.
func (p *Plan) before(i int) before {
	j := &p.jobs[i]
	b := before{ended: true, needs: j.HasNeeds}
	if j.HasNeeds {
		for _, n := range j.Needs {
			p.add(&b, n)
		}
		return b
	}
	for k := range p.jobs {
		if p.jobs[k].Stage < j.Stage && p.jobs[k].Parent == j.Parent {
			p.add(&b, k)
		}
	}
	return b
}

func (p *Plan) add(b *before, k int) {
	name := p.jobs[k].Name
	switch s := p.state[k]; s {
	case Failed, Canceled:
		first(&b.failed, name)
	case Skipped, Manual:
		first(&b.unrun, name)
		if s == Manual && !p.jobs[k].AllowFailure.All {
			first(&b.held, name)
		}
	case Blocked:
		first(&b.held, p.holder[k])
	case Succeeded, Warned:
	default:
		b.ended = false
	}
	if p.jobs[k].Depend {
		p.addChildren(b, k)
	}
}

// addChildren adds the jobs of the child pipeline that a job has started, for whoever waits
// for that. A job that was skipped counts for nothing.
func (p *Plan) addChildren(b *before, k int) {
	for i := range p.jobs {
		if p.jobs[i].Parent != k+1 {
			continue
		}
		switch s := p.state[i]; {
		case !s.Final():
			b.ended = false
		case s == Failed || s == Canceled:
			if !p.jobs[k].AllowFailure.All {
				first(&b.failed, p.jobs[i].Name)
			}
		case s == Blocked:
			first(&b.held, p.holder[i])
		case s == Manual && !p.jobs[i].AllowFailure.All:
			first(&b.held, p.jobs[i].Name)
		}
		if p.jobs[i].Depend {
			p.addChildren(b, i)
		}
	}
}

func first(to *string, name string) {
	if *to == "" {
		*to = name
	}
}

// forbids says why a job is skipped; it is empty if the job is to run.
func (b *before) forbids(j *Job) string {
	switch {
	case j.When == pipeline.Always:
		return ""
	case b.needs && b.unrun != "":
		return fmt.Sprintf("needs %q, which did not run", b.unrun)
	case j.When == pipeline.OnFailure && b.failed == "":
		return "runs only after a failure"
	case j.When != pipeline.OnFailure && b.failed != "":
		return fmt.Sprintf("%q failed", b.failed)
	}
	return ""
}
