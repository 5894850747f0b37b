//go:build unix

package predefined

import "strings"

// noCommit is what GitLab calls the commit before the first.
const noCommit = "0000000000000000000000000000000000000000"

// commit are the variables of the commit that is checked out; none without git.
func (r *Run) commit(sha string) map[string]string {
	if sha == "" {
		return nil
	}
	message := r.ask("log", "-1", "--format=%B")
	title, description, _ := strings.Cut(message, "\n")
	before := r.ask("rev-parse", "--verify", "--quiet", "HEAD~1")
	if before == "" {
		before = noCommit
	}
	v := map[string]string{
		"CI_COMMIT_SHA": sha, "CI_COMMIT_SHORT_SHA": sha[:min(8, len(sha))], "CI_COMMIT_BEFORE_SHA": before,
		"CI_COMMIT_MESSAGE": message, "CI_COMMIT_TITLE": title, "CI_COMMIT_DESCRIPTION": strings.TrimLeft(description, "\n"),
		"CI_COMMIT_AUTHOR":    r.ask("log", "-1", "--format=%an <%ae>"),
		"CI_COMMIT_TIMESTAMP": r.ask("log", "-1", "--format=%cI"),
	}
	return v
}
