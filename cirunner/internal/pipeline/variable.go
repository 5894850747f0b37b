package pipeline

import (
	"regexp"
	"slices"
	"strings"
)

var VariableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// A Variable is a name and a value for the environment of a job.
type Variable struct {
	Name, Value string

	// Raw says that the value is to be taken as it is: a $ in it is a dollar.
	Raw bool

	// Masked says that the value is not to be seen in logs.
	Masked bool

	// File says that the value is to be in a file, whose path is in the environment.
	File bool

	// Fixed says that no report of a job changes the variable.
	Fixed bool
}

// Secrets returns the texts that are not to be seen of the variable.
func (v Variable) Secrets() []string {
	if !v.Masked {
		return nil
	}
	return Secrets(v.Value)
}

// Secrets returns the texts that are not to be seen of a value: itself, and its lines.
func Secrets(value string) []string {
	if value == "" {
		return nil
	}
	all := []string{value}
	if lines := strings.Split(value, "\n"); len(lines) > 1 {
		all = append(all, lines...)
	}
	return all
}

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
