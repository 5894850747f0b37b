// Package jobreport reads what jobs report in files and in their logs: variables for later
// jobs, the results of tests, and how much of the code they have covered.
package jobreport

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// maxDotenv is how long a line of a dotenv file may be, in bytes.
const maxDotenv = 128 << 10

// Dotenv reads lines of the form NAME=value, as GitLab does: no quotes, no comments, no
// references. wrong says which lines are not of that form; GitLab would refuse their file.
// valid reports whether a text can be the name of a variable.
func Dotenv(r io.Reader, valid func(name string) bool) (variables map[string]string, wrong []string, err error) {
	variables = map[string]string{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxDotenv)
	for n := 1; lines.Scan(); n++ {
		name, value, found := strings.Cut(lines.Text(), "=")
		if name = strings.TrimSpace(name); !found || !valid(name) {
			wrong = append(wrong, fmt.Sprintf("line %d should be NAME=value", n))
			continue
		}
		variables[name] = strings.TrimSpace(value)
	}
	return variables, wrong, lines.Err()
}
