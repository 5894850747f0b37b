package jobreport

import "regexp"

var number = regexp.MustCompile(`\d+(?:\.\d+)?`)

// Coverage returns the number in the last match of an expression in a line, as GitLab does:
// of its last group, if it has groups. It is empty if there is none.
func Coverage(of *regexp.Regexp, line string) string {
	matches := of.FindAllStringSubmatch(line, -1)
	if len(matches) == 0 {
		return ""
	}
	last := matches[len(matches)-1]
	return number.FindString(last[len(last)-1])
}
