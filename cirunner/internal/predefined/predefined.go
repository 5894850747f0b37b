//go:build unix

// Package predefined knows the CI variables of a run on this machine, as far as
// git and the machine can tell them, and which files have changed.
//
// predefined.go is what kind of run it is, project.go the project and its server,
// commit.go the commit, changes.go the files.
package predefined

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ambit-go/ambit/cirunner/internal/projectvars"
)

// A Wish is what kind of run it is to be. The zero value is a push to the branch
// that is checked out.
type Wish struct {
	Branch string // the branch; empty for the one that is checked out
	Tag    string // a tag: then it is a run for that and not for a branch
	Merge  string // the target of a merge request: then it is a run for that
}

// Local is the name of the branch where none is checked out. It is nobody's
// default branch, so that nothing is deployed by mistake.
const Local = "local"

// A Run is a run on this machine. Goroutines may share it.
type Run struct {
	// Variables are the predefined variables of the pipeline, without those of
	// its jobs.
	Variables map[string]string

	ctx  context.Context // of the questions to git
	dir  string
	git  bool // there is a commit
	wish Wish

	mu      sync.Mutex
	changed map[string]answer // by what was compared with
	files   []string
	listed  bool
}

// New asks git about the project in a directory. ctx bounds this and all later
// questions. Without git, or without a commit, the run is one of the branch
// [Local], and what only git knows is missing.
func New(ctx context.Context, dir string, wish Wish) *Run {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	r := &Run{ctx: ctx, dir: dir, wish: wish, changed: map[string]answer{}}
	sha := r.ask("rev-parse", "--verify", "--quiet", "HEAD")
	r.git = sha != ""
	branch := wish.Branch
	if branch == "" {
		branch = r.ask("symbolic-ref", "--quiet", "--short", "HEAD")
	}
	if branch == "" {
		branch = Local
	}
	r.Variables = map[string]string{
		"CI": "true", "GITLAB_CI": "true", "CI_SERVER": "yes", "CI_RUNNER_DESCRIPTION": "cirunner",
		"CI_NODE_TOTAL": "1", "CI_COMMIT_REF_PROTECTED": "false", "CI_PIPELINE_SOURCE": "push",
		"CI_DEFAULT_BRANCH": r.defaultBranch(),
	}
	maps.Copy(r.Variables, r.project())
	maps.Copy(r.Variables, r.commit(sha))
	maps.Copy(r.Variables, r.ref(branch))
	return r
}

// Protect says which branches and tags are protected, by patterns in which * is any text;
// without any, the default branch is. A merge request is protected if both its branches are.
func (r *Run) Protect(patterns []string) {
	if len(patterns) == 0 && r.wish.Tag == "" {
		patterns = []string{r.Variables["CI_DEFAULT_BRANCH"]}
	}
	protected := func(name string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return projectvars.Matches(p, name) })
	}
	is := protected(r.Variables["CI_COMMIT_REF_NAME"]) && (r.wish.Merge == "" || protected(r.wish.Merge))
	r.Variables["CI_COMMIT_REF_PROTECTED"] = strconv.FormatBool(is)
}

// ref are the variables of the branch, tag or merge request.
func (r *Run) ref(branch string) map[string]string {
	v := map[string]string{}
	name := branch
	switch {
	case r.wish.Tag != "":
		name = r.wish.Tag
		v["CI_COMMIT_TAG"] = name
		if message := r.ask("tag", "--list", "--format=%(contents)", name); message != "" {
			v["CI_COMMIT_TAG_MESSAGE"] = message
		}
	case r.wish.Merge != "":
		maps.Copy(v, r.merge(branch))
	default:
		v["CI_COMMIT_BRANCH"] = branch
	}
	v["CI_COMMIT_REF_NAME"], v["CI_COMMIT_REF_SLUG"] = name, Slug(name)
	return v
}

// merge are the variables of a merge request.
func (r *Run) merge(branch string) map[string]string {
	path := r.Variables["CI_PROJECT_PATH"]
	return map[string]string{
		"CI_PIPELINE_SOURCE":                   "merge_request_event",
		"CI_MERGE_REQUEST_ID":                  "1",
		"CI_MERGE_REQUEST_IID":                 "1",
		"CI_MERGE_REQUEST_EVENT_TYPE":          "detached",
		"CI_MERGE_REQUEST_REF_PATH":            "refs/merge-requests/1/head",
		"CI_MERGE_REQUEST_SOURCE_BRANCH_NAME":  branch,
		"CI_MERGE_REQUEST_TARGET_BRANCH_NAME":  r.wish.Merge,
		"CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": path,
		"CI_MERGE_REQUEST_PROJECT_PATH":        path,
		"CI_MERGE_REQUEST_TITLE":               r.ask("log", "-1", "--format=%s"),
		"CI_MERGE_REQUEST_DIFF_BASE_SHA":       r.ask("merge-base", r.wish.Merge, "HEAD"),
		"CI_OPEN_MERGE_REQUESTS":               path + "!1",
	}
}

// Slug is a name for host names and the like: lower case, letters, digits and
// dashes, at most 63 characters, and no dash at the ends.
func Slug(name string) string {
	keep := func(c rune) rune {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			return c
		}
		return '-'
	}
	s := strings.Map(keep, strings.ToLower(name))
	return strings.Trim(s[:min(len(s), 63)], "-")
}

// EnvironmentSlug is a short name of an environment for host names, as GitLab makes it:
// at most 24 characters, of which the first is a letter. A name that cannot be had
// as it is gets an end of its own, so that two names do not come to the same.
func EnvironmentSlug(name string) string {
	const most, end = 24, 7
	s := Slug(name)
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		s = "env-" + s
	}
	for strings.Contains(s, "--") {
		s = strings.ReplaceAll(s, "--", "-")
	}
	if s == name && len(s) <= most {
		return s
	}
	s = strings.Trim(s[:min(len(s), most-end)], "-")
	return s + "-" + fmt.Sprintf("%x", sha256.Sum256([]byte(name)))[:end-1]
}
