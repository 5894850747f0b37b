package parse

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// Project variables are over those of the file and its jobs and under those of the
// command line, for rules and includes, too.
func TestProjectVariables(t *testing.T) {
	o := optionsOf("main")
	o.Dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(o.Dir, "extra.yml"), []byte("included: {script: x}"), 0o600))
	o.Set = map[string]string{"BOTH": "command line"}
	o.Project = func(environment string) []pipeline.Variable {
		all := []pipeline.Variable{{Name: "WHICH", Value: "extra", Fixed: true}, {Name: "A", Value: "project", Fixed: true}, {Name: "BOTH", Value: "project", Fixed: true}}
		if environment == "review/main" {
			all = append(all, pipeline.Variable{Name: "SCOPED", Value: "yes", Masked: true, Fixed: true})
		}
		return all
	}
	p, err := o.Parse("f.yml", []byte(`
include: {local: $WHICH.yml, rules: [{if: $A == "project"}]}
workflow: {rules: [{if: $A == "project" && $SCOPED == null}]}
variables: {A: file, B: file}
plain: {script: x, variables: {A: job, BOTH: job}, rules: [{if: $A == "project" && $BOTH == "command line" && $B == "file"}]}
scoped: {script: x, environment: review/$CI_COMMIT_BRANCH, rules: [{if: $SCOPED}]}
unscoped: {script: x, environment: other, rules: [{if: $SCOPED}]}
`))
	require.NoError(t, err)
	require.Equal(t, []string{"included", "plain", "scoped"}, names(p.Jobs))
	require.Equal(t, []string{"A=project", "B=file", "BOTH=command line", "WHICH=extra"}, values(p.Job("plain")))
	last := p.Job("scoped").Variables
	require.Contains(t, last, pipeline.Variable{Name: "SCOPED", Value: "yes", Masked: true, Fixed: true})
}

// A script that needs what only a server issues is told, unless somebody has given it.
func TestTokensThatNothingIssues(t *testing.T) {
	const data = `
a: {script: 'docker login -p "$CI_REGISTRY_PASSWORD"', after_script: 'curl --header "JOB-TOKEN: ${CI_JOB_TOKEN}" $CI_JOB_TOKEN'}
b: {script: echo $CI_JOB_TOKEN_OF_MINE $CI_JOB_URL}
`
	p, err := optionsOf("main").Parse("f.yml", []byte(data))
	require.NoError(t, err)
	require.Equal(t, []string{"CI_REGISTRY_PASSWORD", "CI_JOB_TOKEN"}, p.Job("a").Missing)
	require.Empty(t, p.Job("b").Missing)
	require.Len(t, p.Warnings, 2)
	require.Equal(t, `f.yml:2:1: warning: CI_JOB_TOKEN: the job "a" needs it, and only a server issues it: give it with -variables or -var`, p.Warnings[0].String())

	o := optionsOf("main")
	o.Set = map[string]string{"CI_JOB_TOKEN": "x"}
	o.Elsewhere = func(name string) bool { return name == "CI_REGISTRY_PASSWORD" }
	p, err = o.Parse("f.yml", []byte(data))
	require.NoError(t, err)
	require.Empty(t, p.Warnings)
}
