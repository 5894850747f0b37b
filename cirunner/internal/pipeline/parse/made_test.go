package parse

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// A child pipeline that jobs make is read when they have run: its jobs come behind all others, and wait for the
// job that starts it.
func TestAPipelineThatJobsMake(t *testing.T) {
	o := optionsOf("main")
	o.Dir = directory(t, map[string]string{"more.yml": "spec: {inputs: {n: ~}}\n---\nmore: {stage: deploy, script: x}"})
	p, err := o.Parse("f.yml", []byte(`
gen: {stage: build, script: x, artifacts: {paths: [out]}}
other: {stage: build, script: x, artifacts: {paths: [out]}}
down:
  needs: [{job: gen, artifacts: false}]
  variables: {A: main A}
  trigger: {include: [{artifact: out/a.yml, job: gen}, {local: more.yml}], inputs: {n: made}, strategy: depend}
after: {stage: deploy, script: x}
`))
	require.NoError(t, err)
	require.Empty(t, p.Warnings)
	down := p.Job("down")
	require.Equal(t, []pipeline.MadeFile{{From: p.Job("gen"), Path: "out/a.yml"}}, down.Made.Files)
	require.Equal(t, []string{"gen", "other", "down", "after"}, names(p.Jobs))

	only, err := p.Only([]string{"down"})
	require.NoError(t, err)
	require.Equal(t, []string{"gen", "down"}, names(only.Jobs))
	down = only.Jobs[1]
	require.Same(t, only.Jobs[0], down.Made.Files[0].From)
	_, err = down.Made.Read(down, [][]byte{[]byte("made: {script: x}")})
	require.ErrorContains(t, err, "the file takes no inputs")
	child, err := down.Made.Read(down, [][]byte{[]byte("spec: {inputs: {n: ~}}\n---\n$[[ inputs.n ]]: {script: x, tags: [a]}")})
	require.NoError(t, err)
	require.Equal(t, []string{"down/made", "down/more"}, names(child.Jobs))
	require.Same(t, down, child.Jobs[0].Parent, "the one that is to run")
	require.Equal(t, "tags", child.Warnings[0].Keyword)
}

// grown starts the pipeline of a file for the job down.
func grown(t *testing.T, p *pipeline.Pipeline, file string) error {
	t.Helper()
	down := p.Job("down")
	child, err := down.Made.Read(down, [][]byte{[]byte(file)})
	if err != nil {
		return err
	}
	return p.Grow(down, child)
}

func TestAPipelineGrows(t *testing.T) {
	const file = `
gen: {stage: build, script: x, artifacts: {paths: [out]}}
down: {trigger: {include: {artifact: out/a.yml, job: gen}}, variables: {A: main A}}
after: {stage: deploy, script: x}
`
	p := right(t, file)
	require.NoError(t, grown(t, p, `
one: {script: x, tags: [a], rules: [{if: $A == "main A" && $CI_PIPELINE_SOURCE == "parent_pipeline"}]}
two: {stage: deploy, needs: [one, {pipeline: $PARENT, job: gen}, {pipeline: $PARENT, job: nobody, optional: true}], script: x}
deeper: {needs: [one], trigger: {include: [{artifact: b.yml, job: one}]}}
no: {script: x, when: never}
`))
	require.Equal(t, []string{"gen", "down", "after", "down/one", "down/two", "down/deeper"}, names(p.Jobs))
	require.Equal(t, []string{"build", "test", "down/build", "down/test", "down/deploy", "deploy"}, p.Stages)
	require.Equal(t, "down/no", p.Left[0].Name)
	for i, j := range p.Jobs {
		require.Equal(t, i, j.Index)
	}
	two := p.Job("down/two")
	require.Equal(t, p.Job("down"), two.Parent)
	require.Equal(t, "down/deploy", two.Stage)
	require.ElementsMatch(t, []string{"gen", "down", "down/one"}, names(two.WaitsFor))
	require.Equal(t, []string{"gen"}, names(two.Fetch))

	deeper := p.Job("down/deeper")
	last, err := deeper.Made.Read(deeper, [][]byte{[]byte("low: {needs: [{pipeline: $PARENT, job: one}], script: x}\nup: {trigger: {include: [{artifact: x.yml, job: low}]}, needs: [low]}")})
	require.NoError(t, err)
	require.Equal(t, "down/one", last.Jobs[0].Needs[0].Job.Name)
	_, err = last.Jobs[1].Made.Read(last.Jobs[1], [][]byte{[]byte("j: {script: x}")})
	require.ErrorContains(t, err, "the child pipeline is too deep: pipelines start pipelines 2 deep at most")

}

func TestAPipelineThatCannotBeAdded(t *testing.T) {
	const file = "gen: {stage: build, script: x, artifacts: {paths: [out]}}\ndown: {trigger: {include: {artifact: out/a.yml, job: gen}}}\nafter: {stage: deploy, script: x}\n"
	for made, want := range map[string]string{
		"j: {scirpt: x}\nk: {stage: no, script: x}": "the child pipeline is wrong\ngen:out/a.yml:1:5: there is no keyword \"scirpt\" in a job",
		"j: {script: x}\nk: {stage: no, script: x}": `gen:out/a.yml:2:12: there is no stage "no"`,
		"j: {script: x, when: never}":               "the child pipeline has no job: rules, only or when keep every job out",
		"j: [":                                      "not YAML",
		"":                                          "the file has no job",
		"j: {script: x, needs: [{pipeline: $P, job: after}]}": `"j" needs "after" of the pipeline that starts this one, and there is no such job for which the job that starts it waits`,
	} {
		err := grown(t, right(t, file), made)
		require.ErrorContains(t, err, want, made)
	}
	require.ErrorContains(t, grown(t, right(t, file+"down/j: {script: x}"), "j: {script: x}"), `two jobs would be called "down/j"`)
	p := &pipeline.Pipeline{Jobs: make([]*pipeline.Job, pipeline.MaxJobs)}
	require.ErrorContains(t, p.Grow(&pipeline.Job{}, &pipeline.Pipeline{Jobs: make([]*pipeline.Job, 1)}), "more than 500 jobs")
}

func TestFilesThatNoJobMakes(t *testing.T) {
	for file, want := range map[string]string{
		"down: {trigger: {include: [{artifact: a.yml}]}}":                                                              "1:28: trigger:include:artifact needs job, the one that makes the file",
		"down: {trigger: {include: [{artifact: a.yml, job: nobody}]}}":                                                 `trigger:include:artifact: there is no job "nobody"`,
		"gen: {stage: build, script: x, when: never}\ndown: {trigger: {include: [{artifact: a.yml, job: gen}]}}":       `"gen", which makes the file, is not in this pipeline (when: never)`,
		"gen: {script: x}\ndown: {trigger: {include: [{artifact: a.yml, job: gen}]}}":                                  `"down" does not wait for "gen", which makes the file: it should be among its needs, or in an earlier stage`,
		"gen: {parallel: 2, script: x}\ndown: {needs: [gen], trigger: {include: [{artifact: a.yml, job: gen}]}}":       `"gen" has 2 parts, and one of them makes the file: name that, such as "gen 1/2"`,
		"gen: {script: x}\ndown: {needs: [gen], trigger: {include: [{artifact: a.yml, job: gen, rules: [{if: $A}]}]}}": `rules are not for an artifact`,
		"gen: {script: x}\ndown: {needs: [gen], trigger: {include: [{artifact: [], job: gen}]}}":                       "trigger:include:artifact should be a text",
		"include: [{artifact: a.yml, job: gen}]\ngen: {script: x}":                                                     "include:artifact is for trigger",
		"include: [{local: a.yml, job: gen}]\ngen: {script: x}":                                                        "include:job is for artifact",
	} {
		_, err := Options{Dir: t.TempDir()}.Parse("f.yml", []byte(file))
		var found *pipeline.Errors
		require.True(t, errors.As(err, &found), file)
		require.ErrorContains(t, err, want, file)
	}
}

// All faults of a child pipeline are told, once, although two jobs start it.
func TestEveryErrorOfAChildIsReported(t *testing.T) {
	o := optionsOf("main")
	o.Dir = directory(t, map[string]string{"c.yml": "j: {scirpt: x}\nk: {stage: no, script: x}\nl: {script: x, when: maybe}"})
	_, err := o.Parse("f.yml", []byte("a: {trigger: {include: c.yml}}\nb: {trigger: {include: c.yml}}"))
	var found *pipeline.Errors
	require.ErrorAs(t, err, &found)
	require.Len(t, found.Problems, 5, "two of the triggers, three of the file")
	require.Contains(t, found.Problems[4].Source, "maybe")
}
