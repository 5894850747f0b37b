package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var goDoc = regexp.MustCompile("`go doc( [^`]+)`")

// TestTheReferenceIsPrinted runs each call of go doc that the pages for newcomers name.
func TestTheReferenceIsPrinted(t *testing.T) {
	for page, least := range map[string]int{"README.md": 3, "docs/adopting.md": 2, "docs/tasks.md": 1} {
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		require.NoError(t, err)
		calls := goDoc.FindAllStringSubmatch(string(text), -1)
		require.GreaterOrEqual(t, len(calls), least, page)
		for _, call := range calls {
			out, err := exec.CommandContext(t.Context(), "go", append([]string{"doc"}, strings.Fields(call[1])...)...).CombinedOutput()
			require.NoError(t, err, "%s: %s: %s", page, call[0], out)
		}
	}
}
