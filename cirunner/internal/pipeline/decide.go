package pipeline

import (
	"fmt"
	"slices"
)

// workflow reads the keyword and decides whether there is a pipeline at all. The
// variables of the rule that matches are over those of the file.
func (p *parser) workflow() {
	n := p.root.field("workflow")
	if n.kind == null {
		return
	}
	var rules []rule
	given := false
	p.fields("workflow", n, keys{
		"name":  func(n *node) { p.string("workflow:name", n) },
		"rules": func(n *node) { rules, given = p.rules("workflow:rules", n, inWorkflow), true },
	}, map[string]string{"auto_cancel": "pipelines do not know of each other"})
	if !given {
		return
	}
	p.guarded = true
	i := p.matching(rules, p.with(p.globals))
	switch {
	case i < 0:
		p.why = fmt.Sprintf("workflow:rules (%s): none of %d matches for %s", p.pos(n.keyAt("rules")), len(rules), p.refName())
	case rules[i].when == Never:
		p.why = fmt.Sprintf("workflow:rules (%s) says when: never for %s", p.pos(rules[i].at), p.refName())
	default:
		p.globals = join(p.globals, rules[i].variables)
	}
}

// Left is a job of the file that is not in the pipeline.
type Left struct {
	Name, Stage string
	Why         string
	Pos         Pos
}

// A decision is what rules make of a job beside what is in the Job itself.
type decision struct {
	needs    []needed // in place of those of the draft
	hasNeeds bool
}

// decide says whether a part of a draft is in the pipeline, and makes it what the
// rule says that has put it there. why says what kept it out.
func (p *parser) decide(d *draft, job *Job) (made decision, why string) {
	switch {
	case p.why != "":
		return made, p.why
	case d.When == Never:
		return made, "when: never"
	}
	variables := p.with(append(slices.Clip(job.Variables),
		Variable{Name: "CI_JOB_NAME", Value: job.Name}, Variable{Name: "CI_JOB_STAGE", Value: job.Stage}))
	if !d.hasRules {
		why := p.keeps(d, variables)
		if why == "" && d.only != nil {
			job.Why = "only: " + p.refName()
		}
		return made, why
	}
	i := p.matching(d.rules, variables)
	if i < 0 {
		return made, fmt.Sprintf("rules: none of %d matches", len(d.rules))
	}
	r := d.rules[i]
	job.Why = r.describe(p)
	if r.when == Never {
		return made, job.Why
	}
	r.apply(d, job)
	return decision{r.needs, r.hasNeeds}, ""
}

// describe says which rule it is, in one line.
func (r rule) describe(p *parser) string {
	s := fmt.Sprintf("rule of line %d", r.at.line)
	if r.cond != nil {
		s += ": if: " + cut(r.cond.String())
	} else if r.changes == nil && r.exists == nil {
		s += ", which always matches"
	}
	if r.changes != nil {
		s += "; changes"
	}
	if r.exists != nil {
		s += "; exists"
	}
	if r.when != "" {
		s += ": when: " + string(r.when)
	}
	return s
}

func cut(s string) string {
	if runes := []rune(s); len(runes) > maxQuoted {
		return string(runes[:maxQuoted]) + "…"
	}
	return s
}

// apply gives a job what the rule says.
func (r rule) apply(d *draft, job *Job) {
	if r.when != "" {
		job.When, job.StartIn = r.when, 0
	}
	if job.When == Delayed && r.startIn > 0 {
		job.StartIn = r.startIn
	}
	if r.allow != nil {
		job.AllowFailure = *r.allow
	}
	if r.interruptible != nil {
		job.Interruptible = *r.interruptible
	}
	job.Variables = join(job.Variables, r.variables)
}
