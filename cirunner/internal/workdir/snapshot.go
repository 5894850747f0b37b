//go:build unix

package workdir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Snapshot copies the project: all jobs of a run see it as it was at that
// moment. Where git is there, what it ignores is left out, and the copy is a
// repository that shares the objects of the project's; notes are about what of
// this could not be had.
func (r *Run) Snapshot(ctx context.Context) (notes []string, err error) {
	source := r.Path("source")
	top, err := gitIn(ctx, r.Project, "rev-parse", "--show-toplevel")
	inGit := err == nil
	if _, there := os.Lstat(filepath.Join(r.Project, ".git")); !inGit && there == nil {
		notes = append(notes, fmt.Sprintf("jobs get every file, also what git would ignore: %v", err))
	}
	whole := inGit && sameDir(strings.TrimSpace(top), r.Project)
	if inGit && !whole {
		// Below a repository that ignores the project git knows no file of it.
		_, err := gitIn(ctx, r.Project, "check-ignore", "--quiet", ".")
		inGit = err != nil
	}
	if whole {
		if err := cloneRepository(ctx, r.Project, source); err != nil {
			notes = append(notes, fmt.Sprintf("jobs have no git repository: %v", err))
		}
	}
	if err := os.MkdirAll(source, 0o755); err != nil {
		return notes, err
	}
	files, err := listFiles(r.Project)
	if inGit {
		files, err = listGit(ctx, r.Project)
	}
	if err != nil {
		return notes, err
	}
	return notes, copyFiles(ctx, r.Project, source, files)
}

// Checkout makes a copy of the project for a job, in place of one that an
// earlier attempt has left.
func (r *Run) Checkout(ctx context.Context, job string) (dir string, err error) {
	dir = r.JobDir(job)
	if err := RemoveAll(dir); err != nil {
		return dir, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return dir, err
	}
	files, err := listFiles(r.Path("source"))
	if err != nil {
		return dir, err
	}
	return dir, copyFiles(ctx, r.Path("source"), dir, files)
}

// JobDir returns the work directory of a job.
func (r *Run) JobDir(job string) string { return r.Path("jobs", job) }

// cloneRepository makes an empty work tree whose repository borrows the
// objects of another, and knows of the same changes.
func cloneRepository(ctx context.Context, from, to string) error {
	_, err := gitIn(ctx, from, "clone", "--quiet", "--shared", "--no-checkout", "--template=", "--", from, to)
	if err != nil {
		_ = RemoveAll(to)
		return err
	}
	index, err := gitIn(ctx, from, "rev-parse", "--git-path", "index")
	if err != nil {
		return err
	}
	path := strings.TrimSuffix(index, "\n")
	if !filepath.IsAbs(path) {
		path = filepath.Join(from, path)
	}
	if err := copyInto(filepath.Join(to, ".git"), path); err != nil {
		return err
	}
	shared, err := gitIn(ctx, from, "rev-parse", "--shared-index-path")
	if shared = strings.TrimSuffix(shared, "\n"); err != nil || shared == "" {
		return nil // the index is whole, or git will say itself why it cannot read it
	}
	return copyInto(filepath.Join(to, ".git"), filepath.Join(filepath.Dir(path), filepath.Base(shared)))
}

// copyInto copies a file into a directory. One that is not there is left out: the index, where nothing was ever added.
func copyInto(dir, path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, filepath.Base(path)), data, 0o644)
}

// listGit returns the files that git knows of or would take.
func listGit(ctx context.Context, dir string) ([]string, error) {
	out, err := gitIn(ctx, dir, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	if err != nil {
		return nil, err
	}
	var files []string
	for name := range strings.SplitSeq(out, "\x00") {
		if name != "" && !strings.HasPrefix(name, Name+"/") {
			files = append(files, filepath.FromSlash(name))
		}
	}
	return files, nil
}

// listFiles returns everything in a directory but what we have put there.
func listFiles(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir() && name == Name:
			return fs.SkipDir
		}
		files = append(files, name)
		return nil
	})
	return files, err
}

// gitIn runs git in a directory, whatever repository the environment is about.
func gitIn(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "GIT_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_OPTIONAL_LOCKS=0")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// Git returns what git says in a directory, without the newline at its end.
func Git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := gitIn(ctx, dir, args...)
	return strings.TrimRight(out, "\n"), err
}

func sameDir(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}
