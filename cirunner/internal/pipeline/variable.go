package pipeline

import (
	"regexp"
	"slices"
	"strings"
)

var VariableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// References returns variables as package vars resolves them: what is raw has no
// references.
func References(all []Variable) map[string]string {
	m := make(map[string]string, len(all))
	for _, v := range all {
		value := v.Value
		if v.Raw {
			value = strings.ReplaceAll(value, "$", "$$")
		}
		m[v.Name] = value
	}
	return m
}

// Join returns the variables of both, in their order, each once: in the place
// of the first and with the value of the second.
func Join(first, second []Variable) []Variable {
	if len(second) == 0 {
		return first
	}
	joined := slices.Clone(first)
	index := make(map[string]int, len(joined))
	for i, v := range joined {
		index[v.Name] = i
	}
	for _, v := range second {
		if i, found := index[v.Name]; found {
			joined[i] = v
			continue
		}
		index[v.Name] = len(joined)
		joined = append(joined, v)
	}
	return joined
}

// IsVariable reports whether a name can be that of a variable.
func IsVariable(name string) bool { return VariableName.MatchString(name) }
