//go:build unix

package runner

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/workdir"
)

// untracked returns the files in the job's directory that git does not track, also
// those it ignores. Without a repository there are none. One that the job has broken is not looked for
// further up, and no program is run that its configuration names: the job may be in a container, and git is not.
func (a *attempt) untracked(ctx context.Context) (names []string, err error) {
	if _, err := os.Stat(filepath.Join(a.dir, ".git")); err != nil {
		return nil, nil
	}
	out, err := workdir.Git(ctx, a.dir, "--git-dir=.git", "-c", "core.fsmonitor=false", "ls-files", "--others", "-z")
	for name := range strings.SplitSeq(out, "\x00") {
		if name != "" {
			names = append(names, name)
		}
	}
	return names, err
}

// madeUntracked returns patterns of the untracked files that the job has made.
func (a *attempt) madeUntracked(ctx context.Context) ([]string, error) {
	had := map[string]bool{}
	for _, name := range a.had {
		had[name] = true
	}
	names, err := a.untracked(ctx)
	var patterns []string
	for _, name := range names {
		if !had[name] {
			patterns = append(patterns, escaped.Replace(name))
		}
	}
	return patterns, err
}

// escaped makes a pattern of a name, which matches nothing else.
var escaped = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`, "}", `\}`)
