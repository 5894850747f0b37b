package decide

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
	"github.com/ambit-go/ambit/cirunner/internal/vars"
	"github.com/bmatcuk/doublestar/v4"
)

// Matching returns the place of the first rule that matches, or -1.
func (p *Run) Matching(rules []draft.Rule, variables map[string]string) int {
	return slices.IndexFunc(rules, func(r draft.Rule) bool { return p.matches(r, variables) })
}

func (p *Run) matches(r draft.Rule, variables map[string]string) bool {
	switch {
	case r.Broken:
		return false
	case r.Cond != nil && !r.Cond.True(variables):
		return false
	case r.Changes != nil && !p.hasChanged(*r.Changes, variables):
		return false
	case r.Exists != nil && !anyMatches(vars.ExpandAll(r.Exists, variables), p.projectFiles()):
		return false
	}
	return true
}

// hasChanged reports whether a file of a pattern has changed. Where that cannot be
// known it has, and also where nothing was pushed: in a schedule, say.
func (p *Run) hasChanged(c draft.Changes, variables map[string]string) bool {
	source := p.Vars["CI_PIPELINE_SOURCE"]
	if source == "parent_pipeline" { // which was for the same change
		source = p.Predefined["CI_PIPELINE_SOURCE"]
	}
	pushed := source == "push" || strings.HasSuffix(source, "_request_event")
	if p.Changed == nil || !pushed && c.Since == "" {
		return true
	}
	since := ""
	if c.Since != "" {
		if all := vars.ExpandAll([]string{c.Since}, variables); len(all) > 0 {
			since = all[0]
		}
	}
	files, known := p.Changed(since)
	if has := p.HasCommit; !known && since != "" && has != nil && !has(since) {
		p.Errorf(c.SinceAt, "changes:compare_to: there is no branch, tag or commit %s here", words.Quote(since))
	}
	return !known || anyMatches(vars.ExpandAll(c.Paths, variables), files)
}

func (p *Run) projectFiles() []string {
	if p.Listing == nil {
		return nil
	}
	return p.Listing()
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
