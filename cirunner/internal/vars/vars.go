// Package vars is about the variables of jobs: in layers, of which the later
// win, and referring to one another.
package vars

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Merge returns the variables of all layers; a later layer wins.
func Merge(layers ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, l := range layers {
		maps.Copy(all, l)
	}
	return all
}

// Limits on what references may grow to: a small file could ask for more than
// there is memory.
const (
	MaxValue = 128<<10 - 1 // bytes of NAME=value: what Linux takes for one string
	MaxTotal = 1 << 20     // of all variables of a job
)

// A TooLargeError says which variable is over a limit. Its name is empty if a
// text with references was.
type TooLargeError struct {
	Name  string
	Limit int
}

// Error names the limit, and the variable if there is one.
func (e *TooLargeError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("a text grows to more than %d bytes once its variables are in place", e.Limit)
	}
	if e.Limit == MaxTotal {
		return fmt.Sprintf("the variables, of which %s is one, have more than %d bytes together", e.Name, e.Limit)
	}
	return fmt.Sprintf("the variable %s has more than %d bytes, which is more than a process can be given", e.Name, e.Limit)
}

// Resolve returns the variables with their references replaced by values:
// $NAME and ${NAME}, to other variables or, through lookup, to what is outside
// of them; $$ is a dollar sign. A name that nobody knows is replaced by nothing.
// Where variables lead back to each other these references are left as they are
// written, as is everything else that begins with a dollar sign. Resolve's error
// is a [*TooLargeError].
//
// A variable whose own name it refers to means the one outside: PATH may be
// "bin:$PATH".
func Resolve(vars map[string]string, lookup func(string) (string, bool)) (map[string]string, error) {
	r := resolver{vars: vars, lookup: lookup, circle: circles(vars), done: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		r.value(name)
	}
	return r.done, r.err
}

// Expand replaces the references in s by values of vars. Its error is a
// [*TooLargeError].
func Expand(s string, vars map[string]string) (string, error) {
	expanded, ok := expand(s, MaxValue, func(name, written string) string { return vars[name] })
	if !ok {
		return "", &TooLargeError{Limit: MaxValue}
	}
	return expanded, nil
}

// Environ returns the variables as an environment, sorted, on top of base.
func Environ(base []string, vars map[string]string) []string {
	env := make([]string, 0, len(base)+len(vars))
	for _, e := range base {
		name, _, _ := strings.Cut(e, "=")
		if _, hidden := vars[name]; !hidden {
			env = append(env, e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

type resolver struct {
	vars   map[string]string
	lookup func(string) (string, bool)
	circle map[string]int
	done   map[string]string
	size   int
	err    error
}

// value returns the value of a variable. It ends: only variables of the same
// circle lead back to each other, and their references are not followed.
func (r *resolver) value(name string) string {
	if v, ok := r.done[name]; ok || r.err != nil {
		return v
	}
	v, ok := expand(r.vars[name], MaxValue-len(name)-1, func(ref, written string) string {
		_, ours := r.vars[ref]
		if ours && r.circle[ref] != r.circle[name] {
			return r.value(ref)
		}
		if ours && ref != name {
			return written
		}
		outside, found := r.lookup(ref)
		if ours && !found {
			return written
		}
		return outside
	})
	r.size += len(name) + len(v)
	switch {
	case r.err != nil: // one that it refers to
	case !ok:
		r.err = &TooLargeError{name, MaxValue}
	case r.size > MaxTotal:
		r.err = &TooLargeError{name, MaxTotal}
	}
	r.done[name] = v
	return v
}

// expand calls value with the name of each reference, and with the reference as
// it is written. It gives up when the result is longer than limit.
func expand(s string, limit int, value func(name, written string) string) (expanded string, ok bool) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "$")
		b.WriteString(before)
		if b.Len() > limit {
			return "", false
		}
		if !found {
			return b.String(), true
		}
		name, written, after := reference(rest)
		switch {
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			after = rest[1:]
		case name == "":
			b.WriteByte('$')
			after = rest
		default:
			b.WriteString(value(name, written))
		}
		s = after
	}
}

// reference splits what follows a dollar sign.
func reference(s string) (name, written, after string) {
	if strings.HasPrefix(s, "{") {
		end := strings.IndexByte(s, '}')
		if end < 0 || nameLen(s[1:end]) != end-1 {
			return "", "", s
		}
		return s[1:end], "$" + s[:end+1], s[end+1:]
	}
	n := nameLen(s)
	return s[:n], "$" + s[:n], s[n:]
}

// nameLen returns the length of the name that s begins with.
func nameLen(s string) int {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(s)
}

// ExpandAll returns texts with variables in their place; nil if the variables grow
// too large.
func ExpandAll(texts []string, variables map[string]string) []string {
	resolved, err := Resolve(variables, func(string) (string, bool) { return "", false })
	if err != nil {
		return nil
	}
	var all []string
	for _, s := range texts {
		if s, err := Expand(s, resolved); err == nil {
			all = append(all, s)
		}
	}
	return all
}
