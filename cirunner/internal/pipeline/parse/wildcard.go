package parse

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// wildcards returns the files below dir that match a pattern, in order: * is anything in
// a name, ** anything at all. So "ci/**.yml" has the files of ci and of all below
// it, "ci/**/*.yml" only those below.
func wildcards(dir, pattern string) []string {
	text := regexp.QuoteMeta(pattern)
	text = strings.ReplaceAll(text, `\*\*`, ".*")
	text = strings.ReplaceAll(text, `\*`, "[^/]*")
	re := regexp.MustCompile("^" + text + "$")
	before, _, _ := strings.Cut(pattern, "*")
	from := path.Dir(before + "x") // nothing outside of it can match
	var found []string
	_ = fs.WalkDir(os.DirFS(dir), from, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what cannot be read is not there
		case d.IsDir() && (d.Name() == ".git" || name == ".cirunner"):
			return fs.SkipDir
		case !d.IsDir() && re.MatchString(name):
			found = append(found, name)
		}
		return nil
	})
	slices.Sort(found)
	return found
}
