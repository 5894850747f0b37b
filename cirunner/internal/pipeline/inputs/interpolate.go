package inputs

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// maxFunctions is how many functions may be in one place, as in GitLab.
const maxFunctions = 3

var (
	ofMatrix = regexp.MustCompile(`^\s*matrix\.[^\s|]+\s*$`)
	place    = regexp.MustCompile(`\$\[\[([^\n]*?)\]\]`)
	truncate = regexp.MustCompile(`^truncate\(\s*(\d{1,6})\s*,\s*(\d{1,6})\s*\)$`)
)

// Interpolate puts values into a text, in the place of each $[[ inputs.name | function ]].
// mark says where a byte of the text is, expand puts variables into a value.
func Interpolate(r *tree.Reader, text []byte, values map[string]*tree.Node, mark func(offset int) tree.Mark, expand func(string) (string, error)) []byte {
	var b strings.Builder
	last := 0
	for _, at := range place.FindAllSubmatchIndex(text, -1) {
		b.Write(text[last:at[0]])
		last = at[1]
		if ofMatrix.Match(text[at[2]:at[3]]) { // which needs:parallel:matrix reads
			b.Write(text[at[0]:at[1]])
			continue
		}
		value, err := evaluate(string(text[at[2]:at[3]]), values, expand)
		if err != nil {
			r.Errorf(mark(at[0]), "%s: %v", words.Quote(string(text[at[0]:at[1]])), err)
		}
		b.WriteString(value)
	}
	b.Write(text[last:])
	return []byte(b.String())
}

func evaluate(inner string, values map[string]*tree.Node, expand func(string) (string, error)) (string, error) {
	parts := strings.Split(inner, "|")
	name, found := strings.CutPrefix(strings.TrimSpace(parts[0]), "inputs.")
	n := values[name]
	switch {
	case !found:
		return "", fmt.Errorf("only inputs.NAME is known here")
	case n == nil:
		return "", fmt.Errorf("there is no input %s in the header%s", words.Quote(name), words.Like(name, words.SortedKeys(values)))
	case len(parts)-1 > maxFunctions:
		return "", fmt.Errorf("more than %d functions", maxFunctions)
	}
	value := textOf(n)
	for _, f := range parts[1:] {
		if n.Kind == tree.List {
			return "", fmt.Errorf("a function takes a text, and %s is an array", name)
		}
		var err error
		if value, err = apply(strings.TrimSpace(f), value, expand); err != nil {
			return "", err
		}
	}
	return value, nil
}

func apply(function, value string, expand func(string) (string, error)) (string, error) {
	switch m := truncate.FindStringSubmatch(function); {
	case function == "expand_vars":
		return expand(value)
	case function == "posix_escape":
		return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'", nil
	case m != nil:
		from, _ := strconv.Atoi(m[1])
		length, _ := strconv.Atoi(m[2])
		all := []rune(value)
		from = min(from, len(all))
		return string(all[from:min(from+length, len(all))]), nil
	}
	return "", fmt.Errorf("there is no function %s; there are expand_vars, truncate(OFFSET, LENGTH) and posix_escape", words.Quote(function))
}

// textOf returns a value as it stands in YAML: an array in one line.
func textOf(n *tree.Node) string {
	if n.Kind != tree.List {
		return n.Text
	}
	return flow(n)
}

func flow(n *tree.Node) string {
	var parts []string
	switch n.Kind {
	case tree.List:
		for _, item := range n.Items {
			parts = append(parts, flow(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case tree.Mapping:
		for _, f := range n.Fields {
			parts = append(parts, quoted(f.Key)+": "+flow(f.Value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case tree.Text:
		return quoted(n.Text)
	case tree.Null:
		return "null"
	}
	return n.Text
}

func quoted(s string) string {
	text, _ := json.Marshal(s) // a text is always one of JSON
	return string(text)
}
