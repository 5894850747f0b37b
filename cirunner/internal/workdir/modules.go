//go:build unix

package workdir

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Module is a submodule of the project, or one of a submodule.
type Module struct {
	// Path is where it stands in the project, Top that of the project's own submodule
	// that it is in, or is.
	Path, Top string

	// Missing says that it is not checked out in the project.
	Missing bool

	dir string // its copy
}

// SnapshotModules copies the submodules of the project, as they are checked out, with
// those in them. It is for CheckoutModules.
func (r *Run) SnapshotModules(ctx context.Context) error {
	r.modules = nil
	return r.addModules(ctx, r.Project, "", "")
}

// addModules copies the submodules of a repository. prefix is where that is in the project,
// top the project's own submodule that it is in.
func (r *Run) addModules(ctx context.Context, repository, prefix, top string) error {
	out, err := gitIn(ctx, repository, "ls-files", "--stage", "-z")
	if err != nil {
		return nil // no repository has no submodules
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		mode, name, _ := strings.Cut(entry, "\t")
		if !strings.HasPrefix(mode, "160000 ") {
			continue
		}
		from := filepath.Join(repository, filepath.FromSlash(name))
		m := Module{Path: prefix + name, Top: cmp.Or(top, name), dir: r.Path("modules", strconv.Itoa(len(r.modules)))}
		if _, err := os.Lstat(filepath.Join(from, ".git")); err != nil {
			m.Missing = true
			r.modules = append(r.modules, m)
			continue
		}
		r.modules = append(r.modules, m)
		if err := copyModule(ctx, from, m.dir); err != nil {
			return err
		}
		if err := r.addModules(ctx, from, m.Path+"/", m.Top); err != nil {
			return err
		}
	}
	return nil
}

func copyModule(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := cloneRepository(ctx, from, to); err != nil {
		return err
	}
	files, err := listGit(ctx, from)
	if err != nil {
		return err
	}
	return copyFiles(ctx, from, to, files)
}

// Modules returns the submodules that SnapshotModules has found.
func (r *Run) Modules() []Module { return r.modules }

// CheckoutModule copies a submodule into the directory of a job.
func (r *Run) CheckoutModule(ctx context.Context, job string, m Module) error {
	dir := filepath.Join(r.JobDir(job), filepath.FromSlash(m.Path))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files, err := listFiles(m.dir)
	if err != nil {
		return err
	}
	return copyFiles(ctx, m.dir, dir, files)
}
