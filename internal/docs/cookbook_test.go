package docs

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// TestTheCookbookShowsTheTestedCode compares the Go code of docs/cookbook.md
// with the files under cookbook: each file is shown, and nothing else. For a recipe it is all from
// the package clause on, of a form written by hand all that follows the imports.
func TestTheCookbookShowsTheTestedCode(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "cookbook.md"))
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, m := range goBlock.FindAllSubmatch(page, -1) {
		shown[string(m[1])] = true
	}

	files := 0
	for _, dir := range []string{"cookbook", filepath.Join("cookbook", "byhand")} {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, name := range names {
			base := filepath.Base(name)
			if strings.HasSuffix(base, "_test.go") && base != "whitebox_test.go" || base == "doc.go" {
				continue // of the tests only the one that is a recipe
			}
			files++
			require.True(t, shown[visible(t, name)], "docs/cookbook.md does not show %s as it is", name)
		}
	}
	require.Len(t, shown, files, "docs/cookbook.md shows code that is in no file")
}

// visible returns the part of a file that is shown.
func visible(t *testing.T, name string) string {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ImportsOnly)
	require.NoError(t, err)
	from := file.Package
	if file.Name.Name == "byhand" {
		from = file.Decls[len(file.Decls)-1].End()
	}
	return strings.TrimLeft(string(text[fset.Position(from).Offset:]), "\n")
}

// TestTheFormsWrittenByHandCompile vets them; they have no tests to do it.
func TestTheFormsWrittenByHandCompile(t *testing.T) {
	args := append(append([]string{"vet"}, asThisTest()...), "./cookbook/byhand")
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	require.NoError(t, err, string(out))
}
