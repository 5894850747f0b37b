package parse

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

const template = `# a comment
spec:
  description: all kinds
  inputs:
    stage: {default: test, options: [build, test]}
    version: {regex: /^v\d+/, description: which}
    parts: {type: number, default: 2}
    lazy: {type: boolean, default: false}
    rules: {type: array, default: [{if: $CI_COMMIT_BRANCH, when: manual}]}
    plain:
      default: ""
---
"$[[ inputs.stage ]]-job":
  stage: $[[ inputs.stage ]]
  parallel: $[[ inputs.parts ]]
  interruptible: $[[ inputs.lazy ]]
  rules: $[[ inputs.rules ]]
  script: [echo "$[[ inputs.version | expand_vars | truncate(1, 3) ]] $[[inputs.plain]]" $[[ inputs.plain | posix_escape ]]]
`

func TestInputs(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "t.yml"), []byte(template), 0o600))
	parse := func(given string, o Options) (*pipeline.Pipeline, error) {
		o.Dir = dir
		return o.Parse("f.yml", []byte("include: {local: t.yml, inputs: {"+given+"}}\nj: {script: x}\n"))
	}
	o := optionsOf("main")
	p, err := parse("version: v1$CI_COMMIT_BRANCH, plain: it's", o)
	require.NoError(t, err)
	require.Equal(t, []string{"test-job 1/2", "test-job 2/2", "j"}, names(p.Jobs))
	j := p.Jobs[0]
	require.Equal(t, []string{`echo "1ma it's" 'it'\''s'`}, j.Script)
	require.Equal(t, pipeline.Manual, j.When)
	require.False(t, j.Interruptible)
	require.Equal(t, 13, j.Pos.Line, "the lines are those of the file")
	p, err = parse("version: v1, stage: build, parts: 3, lazy: true, rules: [{when: always}]", o)
	require.NoError(t, err)
	require.Equal(t, []string{"build-job 1/3", "build-job 2/3", "build-job 3/3", "j"}, names(p.Jobs))
	require.True(t, p.Jobs[0].Interruptible)

	o.Project = func(string) []pipeline.Variable {
		return []pipeline.Variable{{Name: "SECRET", Value: "x", Masked: true}}
	}
	for given, want := range map[string]string{
		"":                              "f.yml:1:10: the input version is missing: the file has no default for it",
		"version: 1":                    `f.yml:1:43: the input version should match /^v\d+/, not be the number 1`,
		"version: v1, stage: deploy":    `the input stage should be one of its options, build or test, not "deploy"`,
		"version: v1, parts: many":      `the input parts should be of the type number, not "many"`,
		"version: v1, lazy: [yes]":      "the input lazy should be of the type boolean, not a list",
		"version: v1, plian: x":         `the file takes no input "plian"; did you mean "plain"?`,
		"version: v1$SECRET":            "expand_vars: SECRET is masked",
		"version: [v1], rules: [], x: ": "the input version should be of the type string, not a list",
	} {
		_, err := parse(given, o)
		require.ErrorContains(t, err, want, given)
	}
}

func TestHeadersThatAreWrong(t *testing.T) {
	for data, want := range map[string]string{
		"spec: {inputs: {a: ~}}\nj: {script: x}":                                                "1:1: spec is not supported: it is for a header",
		"spec: {inputs: {a: {type: text}}}\n---\nj: {script: x}":                                "1:27: spec:inputs:a:type should be string, number, boolean or array",
		"spec: {inputs: {a: {default: 1, type: array}}}\n---\nj: {script: x}":                   "1:30: the input a should be of the type array, not the number 1",
		"spec: {inputs: {a: ~}}\n---\nj: {script: x}":                                           "1:1: the input a is missing",
		"spec: {component: [name]}\n---\nj: {script: x}":                                        `there is no keyword "component" in spec`,
		"spec: {}\n---\nj: {script: '$[[ inputs.a ]]'}":                                         "3:14: \"$[[ inputs.a ]]\": there is no input \"a\" in the header",
		"spec: {inputs: {a: {default: x}}}\n---\nj: {script: '$[[ inputs.a | up ]]'}":           `there is no function "up"`,
		"spec: {inputs: {a: {default: x}}}\n---\nj: {script: '$[[ component.name ]]'}":          "only inputs.NAME is known here",
		"spec: {inputs: {a: {default: x}}}\n---\nj: {scirpt: '$[[ inputs.a ]]'}":                "3:5: there is no keyword \"scirpt\"",
		"spec: {inputs: {a: {default: x, rules: [{if: $A}]}}}\n---\nj: {script: x}":             `there is no keyword "rules" in spec:inputs:a`,
		"include: {local: none.yml, inputs: [a]}\nj: {script: x}":                               "include:inputs should be a mapping, not a list",
		"spec: {inputs: {a: {default: \"a\\n- b\"}}}\n---\nj: {script: x}\n---\nk: {script: x}": "a second document begins here",
	} {
		_, err := Options{}.Parse("f.yml", []byte(data))
		require.ErrorContains(t, err, want, data)
	}
	p, err := Options{Inputs: map[string]string{"a": "[x, 1.10]"}}.Parse("f.yml", []byte("spec: {inputs: {a: {type: array}}}\n---\nj: {script: $[[ inputs.a ]]}"))
	require.ErrorContains(t, err, "YAML reads this one as the number 1.10")
	require.Nil(t, p)
	p, err = Options{Inputs: map[string]string{"a": "b"}}.Parse("f.yml", []byte("spec: {inputs: {a: ~}}\n---\nj: {script: $[[ inputs.a ]]}"))
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, p.Jobs[0].Script)
	require.Equal(t, "f.yml", p.File)
}
