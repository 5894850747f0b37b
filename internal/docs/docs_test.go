// Package docs checks that the programs shown in the documentation compile.
package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var program = regexp.MustCompile("(?ms)^```go\n(package .*?)^```$")

// TestProgramsInTheDocumentationCompile compiles every Go program in README.md and
// docs/, laid over the module so that it sees the packages as they are.
func TestProgramsInTheDocumentationCompile(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	require.NoError(t, err)
	programs := map[string][]byte{}
	for _, page := range append(pages, filepath.Join("..", "..", "README.md")) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for i, m := range program.FindAllSubmatch(text, -1) {
			programs[fmt.Sprintf("%s-%d", filepath.Base(page), i+1)] = m[1]
		}
	}
	require.NotEmpty(t, programs, "no program found: has the way they are marked changed?")
	out, err := compile(t, programs)
	require.NoError(t, err, out)
}

// TestABrokenProgramIsFound shows that the check can fail, and names the program.
func TestABrokenProgramIsFound(t *testing.T) {
	out, err := compile(t, map[string][]byte{
		"good.md-1":   []byte("package main\n\nfunc main() {}\n"),
		"broken.md-2": []byte("package main\n\nfunc main() { undefined() }\n"),
	})
	require.Error(t, err)
	require.Contains(t, out, "undefined: undefined")
	require.Contains(t, out, "broken.md-2")
	require.NotContains(t, out, "good.md-1")
}

// TestTheCompilerSaysWhatAdoptingShows compiles the mistakes at the end of docs/adopting.md that the compiler finds.
func TestTheCompilerSaysWhatAdoptingShows(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "adopting.md"))
	require.NoError(t, err)
	const frame = "package main\n\nimport (\n\t\"context\"\n\n\t\"github.com/ambit-go/ambit/async\"\n)\n\n" +
		"func f(context.Context) error { return nil }\n\nfunc g(context.Context, int) error { return nil }\n\nfunc main() {\n\tctx := context.Background()\n\t%s\n}\n"
	words, programs := map[string]string{}, map[string][]byte{}
	for name, c := range map[string]struct{ call, words string }{
		"limit":   {"async.Go(ctx, f, async.Limit(2))", "async.ScopeForkOption does not implement async.TaskOption"},
		"daemon":  {"_ = async.Scope(ctx, f, async.Daemon())", "does not implement async.ScopeOption"},
		"execute": {"async.Execute(ctx, f)", "does not match func(ctx context.Context) (T, error)"},
		"retry":   {"_, _ = async.Retry(ctx, async.Every(1), f)", "does not match func(ctx context.Context) (T, error)"},
		"foreach": {"_ = async.ForEach(ctx, []int{1}, g)", "does not match iter.Seq[A]"},
	} {
		require.Contains(t, string(page), "`"+c.words+"`")
		words[name], programs[name] = c.words, fmt.Appendf(nil, frame, c.call)
	}
	out, err := compile(t, programs)
	require.Error(t, err)
	for name := range programs {
		_, said, _ := strings.Cut(out, "program/"+name+"\n")
		said, _, _ = strings.Cut(said, "\n#")
		require.Contains(t, said, words[name], name)
	}
}

// compile compiles programs by their names, beside each other, and returns what the compiler says.
func compile(t *testing.T, programs map[string][]byte) (string, error) {
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	overlaid := map[string]string{}
	// It compiles as the tests are compiled, and does not link: that takes longer, and says no more.
	args := append([]string{"list", "-export", "-overlay", filepath.Join(dir, "overlay.json")}, asThisTest()...)
	for name, source := range programs {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, source, 0o600))
		overlaid[filepath.Join(top, "internal", "docs", "program", name, "main.go")] = file
		args = append(args, "./internal/docs/program/"+name)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": overlaid})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = top
	var said strings.Builder
	cmd.Stderr = &said
	err = cmd.Run()
	return said.String(), err
}

// asThisTest are the flags with which the go command finds compiled what this test is built of.
func asThisTest() []string {
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return []string{"-race"}
	}
	return nil
}
