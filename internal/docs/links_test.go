package docs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	inline  = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*?)\s*$`)
	unnamed = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinksLeadSomewhere follows every link of a page of this repository that leads into it: the file is
// there, and the heading in it.
func TestLinksLeadSomewhere(t *testing.T) {
	links := 0
	for path, name := range files(t, ".md") {
		for _, to := range linksOf(t, path) {
			links++
			require.NoError(t, follow(path, to), "%s links to %s", name, to)
		}
	}
	require.Positive(t, links)
}

// files returns the files of this repository with these extensions: their names by their paths.
func files(t *testing.T, extensions ...string) map[string]string {
	t.Helper()
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	names := map[string]string{}
	require.NoError(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != top: // what another test had made
			return nil
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "out", "node_modules"}, d.Name()):
			return filepath.SkipDir
		case !d.IsDir() && slices.Contains(extensions, filepath.Ext(path)):
			names[path], err = filepath.Rel(top, path)
		}
		return err
	}))
	return names
}

// TestALinkToNothingIsFound shows that the check can fail.
func TestALinkToNothingIsFound(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("# A page: of `two` words\n[a](#a-page-of-two-words) [b](page.md#b) [c](none.md)\n"), 0o600))
	to := linksOf(t, page)
	require.Equal(t, []string{"#a-page-of-two-words", "page.md#b", "none.md"}, to)
	require.NoError(t, follow(page, to[0]))
	require.ErrorContains(t, follow(page, to[1]), "no heading b")
	require.ErrorIs(t, follow(page, to[2]), fs.ErrNotExist)
}

// linksOf returns where the links of a page lead, those out of the repository left out.
func linksOf(t *testing.T, page string) (all []string) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, m := range link.FindAllSubmatch(inline.ReplaceAll(fenced.ReplaceAll(text, nil), nil), -1) {
		if to := string(m[1]); !strings.Contains(to, "://") && !strings.HasPrefix(to, "mailto:") {
			all = append(all, to)
		}
	}
	return all
}

type noHeading string

func (h noHeading) Error() string { return "no heading " + string(h) }

// follow returns an error if a link of a page leads to nothing.
func follow(page, to string) error {
	file, anchor, _ := strings.Cut(to, "#")
	if file == "" {
		file = page
	} else {
		file = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
	}
	if info, err := os.Stat(file); err != nil || anchor == "" || info.IsDir() || filepath.Ext(file) != ".md" {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, m := range heading.FindAllSubmatch(fenced.ReplaceAll(text, nil), -1) {
		if nameOf(string(m[1])) == anchor {
			return nil
		}
	}
	return noHeading(anchor)
}

// nameOf returns what links call a heading.
func nameOf(heading string) string {
	return strings.ReplaceAll(unnamed.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
