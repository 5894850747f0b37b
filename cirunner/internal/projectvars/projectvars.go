//go:build unix

// Package projectvars reads a file of project variables: what a GitLab server keeps in
// the settings of a project, and hands to its pipelines.
package projectvars

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/ambit-go/ambit/cirunner/internal/mask"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// maxSize is how many bytes a file may have.
const maxSize = 1 << 20

// everywhere is the scope of a variable that every job has.
const everywhere = "*"

// A File has project variables.
type File struct{ variables []variable }

type variable struct {
	pipeline.Variable
	protected bool
	scope     string
}

// An entry is a variable as the file has it: by our names, or by those of GitLab's API.
type entry struct {
	Name, Key        string
	Value            *string
	Masked, Hidden   bool
	Protected, Raw   bool
	Type             string
	VariableType     string `yaml:"variable_type"`
	EnvironmentScope string `yaml:"environment_scope"`
	Description      *string
}

// Read reads a file. It refuses one that others than its owner can read.
func Read(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s: others can read it, or write to it (%v), and it has secrets: chmod 600 %[1]s", path, info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxSize:
		return nil, fmt.Errorf("%s: it has more than %d bytes", path, maxSize)
	}
	f, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func parse(data []byte) (*File, error) {
	var entries []entry
	if err := yaml.Load(data, &entries, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("it should be a list of variables, each with name and value: %s", withoutValues(err))
	}
	f := &File{}
	for i, e := range entries {
		v, err := e.variable()
		if err != nil {
			return nil, fmt.Errorf("variable %d: %w", i+1, err)
		}
		if slices.ContainsFunc(f.variables, func(o variable) bool { return o.Name == v.Name && o.scope == v.scope }) {
			return nil, fmt.Errorf("variable %d: %s is there already for the environment scope %s", i+1, v.Name, v.scope)
		}
		f.variables = append(f.variables, v)
	}
	// The closer a scope is to one environment the stronger it is: the last counts.
	slices.SortStableFunc(f.variables, func(a, b variable) int { return compareScopes(a.scope, b.scope) })
	return f, nil
}

// quoted is what the YAML library shows of a value.
var quoted = regexp.MustCompile("(?s)`.*`")

// withoutValues is the text of an error, without what may be a secret.
func withoutValues(err error) string { return quoted.ReplaceAllString(err.Error(), "a value") }

func (e entry) variable() (variable, error) {
	v := variable{protected: e.Protected, scope: cmp.Or(e.EnvironmentScope, everywhere)}
	v.Name, v.Raw, v.Masked = cmp.Or(e.Name, e.Key), e.Raw, e.Masked || e.Hidden
	switch {
	case !pipeline.IsVariable(v.Name):
		return v, fmt.Errorf("%q cannot be the name of a variable: it should have letters, digits and _, and begin with no digit", v.Name)
	case e.Value == nil:
		return v, fmt.Errorf("%s has no value", v.Name)
	case v.Masked && len(*e.Value) < mask.MinLen:
		return v, fmt.Errorf("the value of %s is too short to be masked: it has less than %d bytes", v.Name, mask.MinLen)
	}
	v.Value, v.Fixed = *e.Value, true
	switch kind := cmp.Or(e.Type, e.VariableType); kind {
	case "", "variable", "env_var":
	case "file":
		v.File = true
	default:
		return v, fmt.Errorf("the type of %s should be variable or file, not %q", v.Name, kind)
	}
	return v, nil
}

func compareScopes(a, b string) int {
	exact := func(s string) int { return min(strings.Count(s, "*"), 1) }
	return cmp.Or(cmp.Compare(exact(b), exact(a)), cmp.Compare(len(a), len(b)))
}

// For returns the variables of a job, in their order: those whose scope has its
// environment, which is empty for a job without one. Protected ones are for runs of
// protected branches and tags only.
func (f *File) For(protected bool, environment string) []pipeline.Variable {
	if f == nil {
		return nil
	}
	var all []pipeline.Variable
	for _, v := range f.variables {
		switch {
		case v.protected && !protected:
		case v.scope == everywhere, environment != "" && Matches(v.scope, environment):
			all = pipeline.Join(all, []pipeline.Variable{v.Variable})
		}
	}
	return all
}

// Secrets returns the values that are masked.
func (f *File) Secrets() []string {
	if f == nil {
		return nil
	}
	var all []string
	for _, v := range f.variables {
		all = append(all, v.Secrets()...)
	}
	return all
}

// Matches reports whether a name is one of a pattern, in which * is any text.
func Matches(pattern, name string) bool {
	text := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
	return regexp.MustCompile("(?s)^(?:" + text + ")$").MatchString(name)
}
