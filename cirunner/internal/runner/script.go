//go:build unix

package runner

import (
	"fmt"
	"strings"
)

// scriptText returns a bash script that shows each command and then runs it, all
// in one shell, up to the first that fails.
func scriptText(commands []string) string {
	var b strings.Builder
	b.WriteString("if (set -o pipefail) 2>/dev/null; then set -o pipefail; fi\nset -e\n") // not every sh has it
	for _, c := range commands {
		fmt.Fprintf(&b, "printf '%%s\\n' %s\n%s\n", quote("$ "+firstLine(c)), strings.TrimRight(c, "\n"))
	}
	return b.String()
}

// serviceText returns the script of a service, of a single command or several.
func serviceText(command string) string { return "set -eo pipefail\n" + command + "\n" }

func firstLine(command string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(command), "\n")
	if rest != "" {
		return first + " ..."
	}
	return first
}

// quote quotes for bash.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
