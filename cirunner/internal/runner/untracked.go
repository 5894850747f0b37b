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
// those it ignores. Without a repository there are none.
func (a *attempt) untracked(ctx context.Context) []string {
	if _, err := os.Stat(filepath.Join(a.dir, ".git")); err != nil {
		return nil
	}
	out, _ := workdir.Git(ctx, a.dir, "ls-files", "--others", "-z")
	var names []string
	for name := range strings.SplitSeq(out, "\x00") {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// madeUntracked returns patterns of the untracked files that the job has made.
func (a *attempt) madeUntracked(ctx context.Context) []string {
	had := map[string]bool{}
	for _, name := range a.had {
		had[name] = true
	}
	var patterns []string
	for _, name := range a.untracked(ctx) {
		if !had[name] {
			patterns = append(patterns, escaped.Replace(name))
		}
	}
	return patterns
}

// escaped makes a pattern of a name, which matches nothing else.
var escaped = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`, "}", `\}`)
