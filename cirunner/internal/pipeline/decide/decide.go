package decide

import (
	"fmt"
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// Workflow decides whether there is a pipeline at all, and returns the variables of
// the rule that matches, which are over those of the file.
func (p *Run) Workflow(w draft.Workflow, globals []pipeline.Variable) []pipeline.Variable {
	if !w.Given {
		return nil
	}
	p.guarded = true
	i := p.Matching(w.Rules, p.with(globals, ""))
	switch {
	case i < 0:
		p.Why = fmt.Sprintf("workflow:rules (%s): none of %d matches for %s", p.Pos(w.At), len(w.Rules), p.RefName())
	case w.Rules[i].When == pipeline.Never:
		p.Why = fmt.Sprintf("workflow:rules (%s) says when: never for %s", p.Pos(w.Rules[i].At), p.RefName())
	default:
		return w.Rules[i].Variables
	}
	return nil
}

// A Decision is what rules make of a job beside what is in the Job itself.
type Decision struct {
	Needs    []draft.Needed // in place of those of the draft
	HasNeeds bool
}

// Decide says whether a part of a draft is in the pipeline, and makes it what the
// rule says that has put it there. why says what kept it out.
func (p *Run) Decide(d *draft.Draft, job *pipeline.Job) (made Decision, why string) {
	switch {
	case p.Why != "":
		return made, p.Why
	case d.When == pipeline.Never:
		return made, "when: never"
	}
	variables := p.with(append(slices.Clip(job.Variables),
		pipeline.Variable{Name: "CI_JOB_NAME", Value: job.Name}, pipeline.Variable{Name: "CI_JOB_STAGE", Value: job.Stage}), p.environmentOf(job))
	if !d.HasRules {
		why := p.keeps(d, variables)
		if why == "" && d.Only != nil {
			job.Why = "only: " + p.RefName()
		}
		return made, why
	}
	i := p.Matching(d.Rules, variables)
	if i < 0 {
		return made, fmt.Sprintf("rules: none of %d matches", len(d.Rules))
	}
	r := d.Rules[i]
	job.Why = describe(r)
	if r.When == pipeline.Never {
		return made, job.Why
	}
	apply(r, job)
	return Decision{r.Needs, r.HasNeeds}, ""
}

// describe says which rule it is, in one line.
func describe(r draft.Rule) string {
	s := fmt.Sprintf("rule of line %d", r.At.Line)
	if r.Cond != nil {
		s += ": if: " + cut(r.Cond.String())
	} else if r.Changes == nil && r.Exists == nil {
		s += ", which always matches"
	}
	if r.Changes != nil {
		s += "; changes"
	}
	if r.Exists != nil {
		s += "; exists"
	}
	if r.When != "" {
		s += ": when: " + string(r.When)
	}
	return s
}

func cut(s string) string {
	if runes := []rune(s); len(runes) > words.MaxQuoted {
		return string(runes[:words.MaxQuoted]) + "…"
	}
	return s
}

// apply gives a job what the rule says.
func apply(r draft.Rule, job *pipeline.Job) {
	if r.When != "" {
		job.When, job.StartIn = r.When, 0
	}
	if job.When == pipeline.Delayed && r.StartIn > 0 {
		job.StartIn = r.StartIn
	}
	if r.Allow != nil {
		job.AllowFailure = *r.Allow
	}
	if r.Interruptible != nil {
		job.Interruptible = *r.Interruptible
	}
	job.Variables = pipeline.Join(job.Variables, r.Variables)
}
