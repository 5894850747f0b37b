package draft

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
	"github.com/bmatcuk/doublestar/v4"
)

func readArtifacts(p *Parser, d *Draft, n *tree.Node) {
	a := pipeline.Artifacts{When: pipeline.OnSuccess}
	ok := p.Fields("artifacts", n, tree.Keys{
		"paths":     func(n *tree.Node) { a.Paths = p.patterns("artifacts:paths", n, p.Texts) },
		"exclude":   func(n *tree.Node) { a.Exclude = p.patterns("artifacts:exclude", n, p.Texts) },
		"untracked": func(n *tree.Node) { a.Untracked, _ = p.Boolean("artifacts:untracked", n) },
		"name": func(n *tree.Node) {
			p.String("artifacts:name", n)
			p.Ignore(n.At, "artifacts:name", "artifacts are files here, and no archive that has a name")
		},
		"when": func(n *tree.Node) {
			if when, ok := tree.Choice(p.Reader, "artifacts:when", n, pipeline.OnSuccess, pipeline.OnFailure, pipeline.Always); ok {
				a.When = when
			}
		},
		"reports": func(n *tree.Node) {
			p.Fields("artifacts:reports", n, tree.Keys{
				"dotenv": func(n *tree.Node) { a.Dotenv = p.patterns("artifacts:reports:dotenv", n, p.List) },
				"junit":  func(n *tree.Node) { a.JUnit = p.patterns("artifacts:reports:junit", n, p.List) },
			}, ignoredInReports)
		},
		// Artifacts go with the work directory of the run, whatever this says.
		"expire_in": func(n *tree.Node) {
			if n.Kind != tree.Text || n.Text != "never" {
				p.Duration("artifacts:expire_in", n, 100*365*24*60*60*1e9)
			}
		},
	}, IgnoredInArtifacts)
	if ok && !n.Has("paths") && !n.Has("reports") && !n.Has("untracked") {
		p.Warn(n.At, "artifacts without paths", "they should have paths, the files to keep; nothing is kept")
	}
	d.Artifacts = a
}

// patterns reads the patterns of files in the job's directory.
func (p *Parser) patterns(what string, n *tree.Node, read func(what string, n *tree.Node) []*tree.Node) []string {
	var all []string
	for _, item := range read(what, n) {
		if p.inside(what, item) {
			all = append(all, item.Text)
		}
	}
	return all
}

// inside reports whether a path or pattern stays in the job's directory, as far
// as can be told while variables are not known.
func (p *Parser) inside(what string, n *tree.Node) bool {
	if n.Kind != tree.Text && n.Kind != tree.Integer && n.Kind != tree.Float {
		return false
	}
	clean := path.Clean(n.Text)
	switch {
	case n.Text == "":
		p.Errorf(n.At, "%s has an empty path", what)
	case strings.Contains(n.Text, "$"):
		return true
	case !filepath.IsLocal(clean) && (strings.HasPrefix(what, "artifacts") || strings.HasPrefix(what, "cache")):
		p.Warn(n.At, "a path outside of the job's directory", "%s: nothing is kept from %s; write a path relative to the job's directory", what, words.Quote(n.Text))
	case !filepath.IsLocal(clean):
		p.Errorf(n.At, "%s: %s is not inside of the job's directory: write a path relative to it", what, words.Quote(n.Text))
	case !doublestar.ValidatePattern(n.Text):
		p.Errorf(n.At, "%s: %s is not a pattern: a [ needs its ], a { its }, or a \\ before it", what, words.Quote(n.Text))
	default:
		return true
	}
	return false
}
