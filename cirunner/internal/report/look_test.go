//go:build unix

package report

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	oneScheme   = regexp.MustCompile(`--([a-z-]+):\s*(#[0-9a-f]+);`)
	bothSchemes = regexp.MustCompile(`--([a-z-]+):\s*light-dark\((#[0-9a-f]+), (#[0-9a-f]+)\);`)
)

// The report and the page of asyncz are read side by side: colours that mean the same are the same, in the light and in the dark.
func TestTheReportHasTheColoursOfAsyncz(t *testing.T) {
	theirs, err := os.ReadFile("../../../async/asyncz/page.css")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the module stands alone")
	}
	require.NoError(t, err)
	ours, err := os.ReadFile("page.css")
	require.NoError(t, err)
	light, dark, found := strings.Cut(string(theirs), "prefers-color-scheme: dark")
	require.True(t, found)
	want := map[string][]string{}
	for _, text := range []string{light, dark} {
		for _, m := range oneScheme.FindAllStringSubmatch(text, -1) {
			want[m[1]] = append(want[m[1]], m[2])
		}
	}
	want["quiet"] = want["soft"]
	same := 0
	for _, m := range bothSchemes.FindAllStringSubmatch(string(ours), -1) {
		if of, has := want[m[1]]; has {
			require.Equal(t, of, m[2:], m[1])
			same++
		}
	}
	require.GreaterOrEqual(t, same, 11)
}
