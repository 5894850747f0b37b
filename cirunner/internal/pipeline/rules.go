package pipeline

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/ambit-go/ambit/cirunner/internal/expr"
)

// A rule is an entry of rules. It matches if all its clauses do; one without
// clauses always matches.
type rule struct {
	at      mark
	cond    *expr.Expr // nil without
	broken  bool       // it was reported, and matches nothing
	changes *changes   // nil without
	exists  []string   // nil without

	// The job as it is if this rule is the first that matches.
	when          When // empty where the rule does not say
	startIn       time.Duration
	allow         *AllowFailure
	variables     []Variable
	needs         []needed
	hasNeeds      bool
	interruptible *bool
}

// changes are patterns of files of which one must have changed.
type changes struct {
	paths []string
	since string // a commit to compare with; empty for the run's own changes

	sinceAt mark
}

// setting says where rules stand: that decides what else a rule may say.
type setting int

const (
	inJob setting = iota
	inWorkflow
	inInclude
)

// rules reads a list of rules, in which there may be lists, as !reference makes
// them.
func (p *parser) rules(what string, n *node, where setting) []rule {
	if n.kind != list {
		p.should(what, n, "a list of rules, each with if, changes, exists or when")
		return nil
	}
	var all []rule
	var read func(n *node, depth int)
	read = func(n *node, depth int) {
		for _, item := range n.items {
			switch {
			case len(all) == maxItems:
				p.errorf(item.at, "%s has more than %d rules", what, maxItems)
				return
			case item.kind == list && depth < maxNesting:
				read(item, depth+1)
			case item.kind == list:
				p.errorf(item.at, "%s has lists in lists more than %d deep", what, maxNesting)
			default:
				all = append(all, p.rule(what, item, where))
			}
		}
	}
	read(n, 0)
	return all
}

func (p *parser) rule(what string, n *node, where setting) rule {
	r := rule{at: n.at}
	readers := keys{
		"if":      func(n *node) { r.cond = p.condition(what+":if", n); r.broken = r.cond == nil },
		"changes": func(n *node) { r.changes = p.changes(what+":changes", n) },
		"exists":  func(n *node) { r.exists = p.exists(what+":exists", n) },
		"when": func(n *node) {
			words := []When{OnSuccess, OnFailure, Always, Manual, Delayed, Never}
			if where != inJob {
				words = []When{Always, Never}
			}
			r.when, _ = choice(p, what+":when", n, words...)
		},
	}
	if where != inInclude {
		readers["variables"] = func(n *node) { r.variables = p.variables(n, false) }
	}
	ignored := map[string]string{}
	switch where {
	case inWorkflow:
		ignored["auto_cancel"] = "pipelines do not know of each other"
	case inJob:
		p.jobRule(what, &r, readers)
	}
	p.fields(what, n, readers, ignored)
	if r.when == Delayed && r.startIn == 0 && !n.has("start_in") {
		p.errorf(n.keyAt("when"), "when: delayed needs start_in, such as start_in: 30 seconds")
	}
	return r
}

// jobRule adds the keywords that only the rules of jobs have.
func (p *parser) jobRule(what string, r *rule, readers keys) {
	readers["start_in"] = func(n *node) { r.startIn, _ = p.duration(what+":start_in", n, maxTimeout) }
	readers["allow_failure"] = func(n *node) {
		var d draft
		readAllowFailure(p, &d, n)
		r.allow = &d.AllowFailure
	}
	readers["needs"] = func(n *node) {
		var d draft
		readNeeds(p, &d, n)
		r.needs, r.hasNeeds = d.needs, true
	}
	readers["interruptible"] = func(n *node) {
		if value, ok := p.boolean(what+":interruptible", n); ok {
			r.interruptible = &value
		}
	}
}

// condition reads an expression; nil if it is none.
func (p *parser) condition(what string, n *node) *expr.Expr {
	if n.kind != text {
		p.should(what, n, "an expression, such as $CI_COMMIT_BRANCH == \"main\"")
		return nil
	}
	e, err := expr.Parse(n.text)
	if err != nil {
		p.errorf(n.at, "%s: %s: %v", what, quote(n.text), err)
		return nil
	}
	return e
}

func (p *parser) changes(what string, n *node) *changes {
	if n.kind != mapping {
		return &changes{paths: asWritten(p.list(what, n))}
	}
	c := &changes{}
	p.fields(what, n, keys{
		"paths":      func(n *node) { c.paths = asWritten(p.list(what+":paths", n)) },
		"compare_to": func(n *node) { c.since, _ = p.string(what+":compare_to", n); c.sinceAt = n.at },
	}, nil)
	return c
}

func (p *parser) exists(what string, n *node) []string {
	all := []string{}
	if n.kind != mapping {
		return append(all, asWritten(p.list(what, n))...)
	}
	p.fields(what, n, keys{
		"paths": func(n *node) { all = append(all, asWritten(p.list(what+":paths", n))...) },
		"project": func(n *node) {
			if len(p.run["CI_PROJECT_PATH"]) == 0 || p.expand(n.text) != p.run["CI_PROJECT_PATH"] {
				p.errorf(n.at, "%s:project: the files of another project are not known here, and so not whether the rule matches", what)
			}
		},
		"ref": func(n *node) {
			p.errorf(n.at, "%s:ref: only the files that are checked out are known here, and so not whether the rule matches", what)
		},
	}, nil)
	return all
}

// matching returns the place of the first rule that matches, or -1.
func (p *parser) matching(rules []rule, variables map[string]string) int {
	return slices.IndexFunc(rules, func(r rule) bool { return p.matches(r, variables) })
}

func (p *parser) matches(r rule, variables map[string]string) bool {
	switch {
	case r.broken:
		return false
	case r.cond != nil && !r.cond.True(variables):
		return false
	case r.changes != nil && !p.hasChanged(*r.changes, variables):
		return false
	case r.exists != nil && !anyMatches(expanded(r.exists, variables), p.projectFiles()):
		return false
	}
	return true
}

// hasChanged reports whether a file of a pattern has changed. Where that cannot be
// known it has, and also where nothing was pushed: in a schedule, say.
func (p *parser) hasChanged(c changes, variables map[string]string) bool {
	pushed := p.isMerge() || p.run["CI_PIPELINE_SOURCE"] == "push"
	if p.options.Changed == nil || !pushed && c.since == "" {
		return true
	}
	since := ""
	if c.since != "" {
		if all := expanded([]string{c.since}, variables); len(all) > 0 {
			since = all[0]
		}
	}
	files, known := p.options.Changed(since)
	if has := p.options.HasCommit; !known && since != "" && has != nil && !has(since) {
		p.errorf(c.sinceAt, "changes:compare_to: there is no branch, tag or commit %s here", quote(since))
	}
	return !known || anyMatches(expanded(c.paths, variables), files)
}

func (p *parser) projectFiles() []string {
	if p.options.Files == nil {
		return nil
	}
	return p.options.Files()
}

// maxComparisons bounds how often a file is compared with a pattern for one rule,
// as in GitLab: beyond, the rule matches.
const maxComparisons = 50_000

// anyMatches reports whether one of some files matches one of some patterns. Names
// without a wildcard are looked for first.
func anyMatches(patterns, files []string) bool {
	globs := 0
	for _, pattern := range patterns {
		if strings.ContainsAny(pattern, `*?[{\`) {
			globs++
		} else if slices.Contains(files, pattern) {
			return true
		}
	}
	if globs*len(files) > maxComparisons {
		return true
	}
	for _, pattern := range patterns {
		pattern = starsOfGitLab.ReplaceAllString(pattern, "*$1")
		for _, file := range files {
			if ok, err := doublestar.Match(pattern, file); ok && err == nil {
				return true
			}
		}
	}
	return false
}

// starsOfGitLab are those at the end of a pattern, where ** is no more than *: only
// "**/" stands for directories.
var starsOfGitLab = regexp.MustCompile(`\*\*+($|[,}])`)
