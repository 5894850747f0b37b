//go:build unix

package predefined

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/workdir"
)

// maxFiles is how many files are looked at in a project without git.
const maxFiles = 100_000

// An answer is what git has said of changes.
type answer struct {
	files []string
	known bool
}

// Changed returns the files that are different from a commit, with what is not
// committed yet. Without one it is what a push would bring, since the branch that
// this one follows, or else the last commit; for a merge request since it and its
// target parted. It reports false if that cannot be known: for a tag, without
// git, if git fails, or if there is no such commit.
func (r *Run) Changed(since string) ([]string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, asked := r.changed[since]
	if !asked {
		known = r.compare(since)
		r.changed[since] = known
	}
	return known.files, known.known
}

func (r *Run) compare(since string) answer {
	if !r.git || since == "" && r.wish.Tag != "" {
		return answer{}
	}
	from := since
	switch {
	case since != "":
	case r.wish.Merge != "":
		from = r.wish.Merge
	default:
		if from = r.ask("rev-parse", "--verify", "--quiet", "@{upstream}"); from == "" {
			from = "HEAD~1"
		}
	}
	base := r.ask("merge-base", r.commitOf(from), "HEAD")
	if base == "" {
		return answer{}
	}
	changed, err := workdir.Git(r.ctx, r.dir, "diff", "--name-only", "--no-renames", "--relative", "-z", base)
	added, err2 := workdir.Git(r.ctx, r.dir, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil || err2 != nil {
		return answer{}
	}
	files := append(split(changed), split(added)...)
	slices.Sort(files)
	return answer{ours(slices.Compact(files)), true}
}

// HasCommit reports whether git knows a branch, a tag or a commit of a name, here or at
// the origin. Without git it reports true: nothing is known then.
func (r *Run) HasCommit(name string) bool { return !r.git || r.commitOf(name) != "" }

// commitOf returns the commit of a name, empty if there is none.
func (r *Run) commitOf(name string) string {
	for _, try := range []string{name, "origin/" + strings.TrimPrefix(name, "refs/heads/")} {
		if commit := r.ask("rev-parse", "--verify", "--quiet", try+"^{commit}"); commit != "" {
			return commit
		}
	}
	return ""
}

// Files returns the files of the project, with slashes: with git those that it
// does not ignore.
func (r *Run) Files() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.listed {
		r.listed = true
		r.files = ours(split(r.ask("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")))
		if len(r.files) == 0 {
			r.files = walk(r.dir)
		}
	}
	return r.files
}

func split(out string) []string {
	return slices.DeleteFunc(strings.Split(out, "\x00"), func(s string) bool { return s == "" })
}

// ours leaves out what the runner has put there.
func ours(files []string) []string {
	return slices.DeleteFunc(files, func(s string) bool { return strings.HasPrefix(s, workdir.Name+"/") })
}

func walk(dir string) []string {
	var files []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(dir, path)
		switch {
		case err != nil || relErr != nil:
			return nil // what cannot be read is not there
		case d.IsDir() && (name == workdir.Name || name == ".git"):
			return fs.SkipDir
		case len(files) == maxFiles:
			return fs.SkipAll
		case !d.IsDir():
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	})
	return files
}
