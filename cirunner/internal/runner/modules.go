//go:build unix

package runner

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// strategyVariable says which submodules a job gets: none, normal or recursive.
const strategyVariable = "GIT_SUBMODULE_STRATEGY"

// snapshotModules copies the submodules if a job wants any.
func (r *Runner) snapshotModules(ctx context.Context) error {
	wants := func(j *pipeline.Job) bool {
		return j.Made != nil || slices.ContainsFunc(j.Variables, func(v pipeline.Variable) bool { return v.Name == strategyVariable && v.Value != "none" })
	}
	if r.base[strategyVariable] == "" && !slices.ContainsFunc(r.Pipeline.Jobs, wants) {
		return nil
	}
	return r.Work.SnapshotModules(ctx)
}

// takeModules lays the submodules that the job wants into its directory.
func (a *attempt) takeModules() error {
	values, err := a.resolve(a.job.Variables, nil)
	if err != nil {
		return nil // the script will say so
	}
	strategy := values[strategyVariable]
	switch strategy {
	case "", "none":
		return nil
	case "normal", "recursive":
	default:
		return fmt.Errorf("%s is %q: it should be none, normal or recursive", strategyVariable, strategy)
	}
	for _, m := range a.r.Work.Modules() {
		switch {
		case m.Path != m.Top && strategy == "normal", !isAmong(m.Top, values["GIT_SUBMODULE_PATHS"]):
			continue
		case m.Missing:
			return fmt.Errorf("the submodule %s is not checked out in the project: git submodule update --init --recursive", m.Path)
		}
		if err := a.r.Work.CheckoutModule(a.work, a.slug(), m); err != nil {
			return fmt.Errorf("cannot copy the submodule %s: %w", m.Path, err)
		}
		a.modules = append(a.modules, m)
	}
	return nil
}

// isAmong reports whether a path is one of those of GIT_SUBMODULE_PATHS: names with spaces
// between them, or what is left out.
func isAmong(path, paths string) bool {
	among, all := false, true
	for _, p := range strings.Fields(paths) {
		out, isOut := strings.CutPrefix(p, ":(exclude)")
		if !isOut {
			out, isOut = strings.CutPrefix(p, ":!")
		}
		is := filepath.Clean(out) == path || strings.HasPrefix(path, filepath.Clean(out)+"/")
		switch {
		case isOut && is:
			return false
		case !isOut:
			all = false
			among = among || is
		}
	}
	return all || among
}

// repositories are the directories of the job that are repositories.
func (a *attempt) repositories() []string {
	all := []string{a.dir}
	for _, m := range a.modules {
		all = append(all, filepath.Join(a.dir, filepath.FromSlash(m.Path)))
	}
	return all
}
