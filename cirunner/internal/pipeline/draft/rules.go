package draft

import (
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/expr"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// A Rule is an entry of rules. It matches if all its clauses do; one without
// clauses always matches.
type Rule struct {
	At      tree.Mark
	Cond    *expr.Expr // nil without
	Broken  bool       // it was reported, and matches nothing
	Changes *Changes   // nil without
	Exists  []string   // nil without

	// The job as it is if this rule is the first that matches.
	When          pipeline.When // empty where the rule does not say
	StartIn       time.Duration
	Allow         *pipeline.AllowFailure
	Variables     []pipeline.Variable
	Needs         []Needed
	HasNeeds      bool
	Interruptible *bool
}

// Changes are patterns of files of which one must have changed.
type Changes struct {
	Paths []string
	Since string // a commit to compare with; empty for the run's own changes

	SinceAt tree.Mark
}

// setting says where rules stand: that decides what else a rule may say.
type setting int

const (
	inJob setting = iota
	inWorkflow
	InInclude
)

// Rules reads a list of rules, in which there may be lists, as !reference makes
// them.
func (p *Parser) Rules(what string, n *tree.Node, where setting) []Rule {
	if n.Kind != tree.List {
		p.Should(what, n, "a list of rules, each with if, changes, exists or when")
		return nil
	}
	var all []Rule
	var read func(n *tree.Node, depth int)
	read = func(n *tree.Node, depth int) {
		for _, item := range n.Items {
			switch {
			case len(all) == tree.MaxItems:
				p.Errorf(item.At, "%s has more than %d rules", what, tree.MaxItems)
				return
			case item.Kind == tree.List && depth < maxNesting:
				read(item, depth+1)
			case item.Kind == tree.List:
				p.Errorf(item.At, "%s has lists in lists more than %d deep", what, maxNesting)
			default:
				all = append(all, p.rule(what, item, where))
			}
		}
	}
	read(n, 0)
	return all
}

func (p *Parser) rule(what string, n *tree.Node, where setting) Rule {
	r := Rule{At: n.At}
	readers := tree.Keys{
		"if":      func(n *tree.Node) { r.Cond = p.condition(what+":if", n); r.Broken = r.Cond == nil },
		"changes": func(n *tree.Node) { r.Changes = p.changes(what+":changes", n) },
		"exists":  func(n *tree.Node) { r.Exists = p.exists(what+":exists", n) },
		"when": func(n *tree.Node) {
			words := []pipeline.When{pipeline.OnSuccess, pipeline.OnFailure, pipeline.Always, pipeline.Manual, pipeline.Delayed, pipeline.Never}
			if where != inJob {
				words = []pipeline.When{pipeline.Always, pipeline.Never}
			}
			r.When, _ = tree.Choice(p.Reader, what+":when", n, words...)
		},
	}
	if where != InInclude {
		readers["variables"] = func(n *tree.Node) { r.Variables = p.variables(n, false) }
	}
	ignored := map[string]string{}
	switch where {
	case inWorkflow:
		ignored["auto_cancel"] = "pipelines do not know of each other"
	case inJob:
		p.jobRule(what, &r, readers)
	}
	p.Fields(what, n, readers, ignored)
	if r.When == pipeline.Delayed && r.StartIn == 0 && !n.Has("start_in") {
		p.Errorf(n.KeyAt("when"), "when: delayed needs start_in, such as start_in: 30 seconds")
	}
	return r
}

// jobRule adds the keywords that only the rules of jobs have.
func (p *Parser) jobRule(what string, r *Rule, readers tree.Keys) {
	readers["start_in"] = func(n *tree.Node) { r.StartIn, _ = p.Duration(what+":start_in", n, tree.MaxTimeout) }
	readers["allow_failure"] = func(n *tree.Node) {
		var d Draft
		readAllowFailure(p, &d, n)
		r.Allow = &d.AllowFailure
	}
	readers["needs"] = func(n *tree.Node) {
		var d Draft
		readNeeds(p, &d, n)
		r.Needs, r.HasNeeds = d.Named, true
	}
	readers["interruptible"] = func(n *tree.Node) {
		if value, ok := p.Boolean(what+":interruptible", n); ok {
			r.Interruptible = &value
		}
	}
}

// condition reads an expression; nil if it is none.
func (p *Parser) condition(what string, n *tree.Node) *expr.Expr {
	if n.Kind != tree.Text {
		p.Should(what, n, "an expression, such as $CI_COMMIT_BRANCH == \"main\"")
		return nil
	}
	e, err := expr.Parse(n.Text)
	if err != nil {
		p.Errorf(n.At, "%s: %s: %v", what, words.Quote(n.Text), err)
		return nil
	}
	return e
}

func (p *Parser) changes(what string, n *tree.Node) *Changes {
	if n.Kind != tree.Mapping {
		return &Changes{Paths: p.globs(what, n)}
	}
	c := &Changes{}
	p.Fields(what, n, tree.Keys{
		"paths":      func(n *tree.Node) { c.Paths = p.globs(what+":paths", n) },
		"compare_to": func(n *tree.Node) { c.Since, _ = p.String(what+":compare_to", n); c.SinceAt = n.At },
	}, nil)
	return c
}

func (p *Parser) exists(what string, n *tree.Node) []string {
	all := []string{}
	switch n.Kind {
	case tree.Text:
		return append(all, n.Text)
	case tree.Mapping:
	default:
		return append(all, p.globs(what, n)...)
	}
	p.Fields(what, n, tree.Keys{
		"paths": func(n *tree.Node) { all = append(all, p.globs(what+":paths", n)...) },
		"project": func(n *tree.Node) {
			if !p.options.IsProject(n.Text) {
				p.Errorf(n.At, "%s:project: the files of another project are not known here, and so not whether the rule matches", what)
			}
		},
		"ref": func(n *tree.Node) {
			p.Errorf(n.At, "%s:ref: only the files that are checked out are known here, and so not whether the rule matches", what)
		},
	}, nil)
	return all
}

// maxPatterns is how many patterns changes or exists may have, as in GitLab.
const maxPatterns = 50

// globs reads the patterns of changes or exists.
func (p *Parser) globs(what string, n *tree.Node) []string {
	if len(n.Items) > maxPatterns {
		p.Errorf(n.At, "%s has %d patterns: it may have %d", what, len(n.Items), maxPatterns)
		return nil
	}
	return tree.AsWritten(p.Texts(what, n))
}
