package pipeline

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

func readArtifacts(p *parser, d *draft, n *node) {
	a := Artifacts{When: OnSuccess}
	ok := p.fields("artifacts", n, keys{
		"paths":     func(n *node) { a.Paths = p.patterns("artifacts:paths", n) },
		"exclude":   func(n *node) { a.Exclude = p.patterns("artifacts:exclude", n) },
		"untracked": func(n *node) { a.Untracked, _ = p.boolean("artifacts:untracked", n) },
		"name":      func(n *node) { a.Name, _ = p.string("artifacts:name", n) },
		"when": func(n *node) {
			if when, ok := choice(p, "artifacts:when", n, OnSuccess, OnFailure, Always); ok {
				a.When = when
			}
		},
		"reports": func(n *node) {
			p.fields("artifacts:reports", n, keys{
				"dotenv": func(n *node) { a.Dotenv = p.patterns("artifacts:reports:dotenv", n) },
				"junit":  func(n *node) { a.JUnit = p.patterns("artifacts:reports:junit", n) },
			}, ignoredInReports)
		},
		// Artifacts go with the work directory of the run, whatever this says.
		"expire_in": func(n *node) {
			if n.kind != text || n.text != "never" {
				p.duration("artifacts:expire_in", n, 100*365*24*60*60*1e9)
			}
		},
	}, ignoredInArtifacts)
	if ok && !n.has("paths") && !n.has("reports") && !n.has("untracked") {
		p.warn(n.at, "artifacts without paths", "they should have paths, the files to keep; nothing is kept")
	}
	d.Artifacts = a
}

// patterns reads the patterns of files in the job's directory.
func (p *parser) patterns(what string, n *node) []string {
	var all []string
	for _, item := range p.list(what, n) {
		if p.inside(what, item) {
			all = append(all, item.text)
		}
	}
	return all
}

// inside reports whether a path or pattern stays in the job's directory, as far
// as can be told while variables are not known.
func (p *parser) inside(what string, n *node) bool {
	if n.kind != text && n.kind != integer && n.kind != float {
		return false
	}
	clean := path.Clean(n.text)
	switch {
	case n.text == "":
		p.errorf(n.at, "%s has an empty path", what)
	case strings.Contains(n.text, "$"):
		return true
	case !filepath.IsLocal(clean) && (strings.HasPrefix(what, "artifacts") || strings.HasPrefix(what, "cache")):
		p.warn(n.at, "a path outside of the job's directory", "%s: nothing is kept from %s; write a path relative to the job's directory", what, quote(n.text))
	case !filepath.IsLocal(clean):
		p.errorf(n.at, "%s: %s is not inside of the job's directory: write a path relative to it", what, quote(n.text))
	case !doublestar.ValidatePattern(n.text):
		p.errorf(n.at, "%s: %s is not a pattern: a [ needs its ], a { its }, or a \\ before it", what, quote(n.text))
	default:
		return true
	}
	return false
}
