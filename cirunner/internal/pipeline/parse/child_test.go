package parse

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

func TestChildPipelines(t *testing.T) {
	o := optionsOf("main")
	o.Dir = directory(t, map[string]string{
		"child.yml": `
stages: [one, two]
variables: {A: child, OWN: child}
first: {stage: one, script: x, rules: [{if: $CI_PIPELINE_SOURCE == "parent_pipeline" && $A == "parent main" && $SET == null}], artifacts: {paths: [a]}}
second: {stage: two, script: x}
third: {stage: two, needs: [first, {pipeline: $PARENT, job: make, optional: true}], script: x, when: manual}
never: {stage: two, script: x, when: never}
`,
		"inputs.yml": "spec: {inputs: {n: ~}}\n---\n$[[ inputs.n ]]: {script: x, rules: [{if: $SET}]}",
		"nested.yml": "deeper: {trigger: {include: child.yml, strategy: depend}, variables: {A: parent $CI_COMMIT_BRANCH}}",
	})
	o.Set = map[string]string{"SET": "yes"}
	p, err := o.Parse("f.yml", []byte(`
stages: [build, test, deploy]
make: {stage: build, script: x, artifacts: {paths: [m]}}
down: {stage: test, trigger: {include: [{local: child.yml}], strategy: depend}, variables: {A: parent $CI_COMMIT_BRANCH}}
side: {stage: test, trigger: {include: inputs.yml, inputs: {n: job}, forward: {pipeline_variables: true, yaml_variables: false}}}
ship: {stage: deploy, script: x}
`))
	require.NoError(t, err)
	require.Equal(t, []string{"make", "down", "down/first", "down/second", "down/third", "side", "side/job", "ship"}, names(p.Jobs))
	require.Equal(t, []string{"build", "test", "side/build", "side/test", "side/deploy", "down/one", "down/two", "deploy"}, p.Stages)
	require.Equal(t, "down/never", p.Left[len(p.Left)-1].Name)
	first := p.Job("down/first")
	require.Equal(t, p.Job("down"), first.Parent)
	require.Contains(t, values(first), "A=parent main", "the parent's is over the child's")
	require.Contains(t, values(first), "OWN=child")
	require.Contains(t, values(first), "CI_PIPELINE_SOURCE=parent_pipeline")
	require.Equal(t, []string{"down"}, names(first.WaitsFor))
	require.Equal(t, []string{"down", "down/first"}, names(p.Job("down/second").WaitsFor))
	require.Equal(t, []string{"down/first"}, names(p.Job("down/second").Fetch))
	require.Equal(t, "down/first", p.Job("down/third").Needs[0].Job.Name)
	require.Equal(t, []string{"make", "down", "down/first"}, names(p.Job("down/third").WaitsFor), "needs:pipeline of the one that starts it")
	require.Equal(t, []string{"make", "down/first"}, names(p.Job("down/third").Fetch))
	require.Equal(t, []string{"make", "down", "down/first", "down/second", "down/third", "side"}, names(p.Job("ship").WaitsFor),
		"with strategy: depend one waits for the pipeline, too")
	require.True(t, p.Job("down").Depend && !p.Job("side").Depend)
	checkPipeline(t, p)

	only, err := p.Only([]string{"down/second"})
	require.NoError(t, err)
	require.Equal(t, []string{"down", "down/first", "down/second"}, names(only.Jobs))
	require.Same(t, only.Jobs[0], only.Jobs[1].Parent)
	only, err = p.Only([]string{"down"})
	require.NoError(t, err)
	require.Equal(t, []string{"make", "down", "down/first", "down/second", "down/third"}, names(only.Jobs))

	p, err = o.Parse("f.yml", []byte("top: {trigger: {include: nested.yml, strategy: depend}}"))
	require.NoError(t, err)
	require.Equal(t, []string{"top", "top/deeper", "top/deeper/first", "top/deeper/second", "top/deeper/third"}, names(p.Jobs))
	require.Equal(t, p.Job("top/deeper"), p.Job("top/deeper/first").Parent)
	checkPipeline(t, p)
}

func TestChildPipelinesThatAreWrong(t *testing.T) {
	o := optionsOf("main")
	o.Dir = directory(t, map[string]string{
		"wrong.yml": "j: {scirpt: x}", "none.yml": "j: {script: x, rules: [{if: $NOBODY}]}",
		"self.yml": "j: {trigger: {include: self.yml}}", "right.yml": "j: {script: x, tags: [a]}",
	})
	for trigger, want := range map[string]string{
		"{include: wrong.yml}":                       "f.yml:1:17: the child pipeline of \"down\" is wrong\n" + o.Dir + "/wrong.yml:1:5: there is no keyword \"scirpt\" in a job",
		"{include: none.yml}":                        `the child pipeline of "down" has no job: rules, only or when keep every job out`,
		"{include: right.yml}}\ndown/j: {script: x":  `1:17: the child pipeline of "down" has a job "j", and "down/j" is the name of another`,
		"{include: nowhere.yml}":                     `there is no file "nowhere.yml"`,
		"{include: self.yml}":                        "pipelines start pipelines 2 deep at most",
		"{include: right.yml, branch: a}":            "1:38: trigger:branch is for project",
		"{strategy: depend}":                         "trigger should have include",
		"{include: right.yml, strategy: wait}":       "trigger:strategy should be depend or mirror",
		"{include: right.yml, forward: {some: yes}}": `there is no keyword "some" in trigger:forward`,
	} {
		_, err := o.Parse("f.yml", []byte("down: {trigger: "+trigger+"}\n"))
		require.ErrorContains(t, err, want, trigger)
	}
	p, err := o.Parse("f.yml", []byte("down: {trigger: {include: right.yml}, allow_failure: true}"))
	require.NoError(t, err)
	var keywords []string
	for _, w := range p.Warnings {
		keywords = append(keywords, w.Keyword)
	}
	require.Equal(t, []string{"allow_failure of a child pipeline", "tags"}, keywords)
	require.Equal(t, []string{"down", "down/j"}, names(p.Jobs))
	require.IsType(t, &pipeline.Job{}, p.Job("down/j").Parent)
}

// A need of the pipeline around may name parts of a matrix; dependencies are about the own pipeline, as in GitLab.
func TestNeedsOfPartsOfThePipelineAround(t *testing.T) {
	child := func(need, more string) (*pipeline.Pipeline, error) {
		o := optionsOf("main")
		o.Dir = directory(t, map[string]string{"c.yml": "j: {needs: [{pipeline: $P, job: gen, parallel: {matrix: [" + need + "]}}], script: x" + more + "}"})
		return o.Parse("f.yml", []byte("gen: {script: x, parallel: {matrix: [{A: [a, b], B: [c, d]}]}, artifacts: {paths: [o]}}\ndown: {needs: [gen], trigger: {include: c.yml}}"))
	}
	for need, want := range map[string][]string{"{A: a}": {"gen: [a, c]", "gen: [a, d]"}, "{A: b, B: d}": {"gen: [b, d]"}} {
		for _, more := range []string{"", ", dependencies: []"} {
			p, err := child(need, more)
			require.NoError(t, err)
			require.Equal(t, want, names(p.Job("down/j").Fetch), need)
		}
	}
	_, err := child("{A: e}", "")
	require.ErrorContains(t, err, `"j" needs a part of "gen" that its matrix does not have`)
}

// A job that starts a pipeline has no shell, and no container.
func TestKeywordsThatAreNotForATrigger(t *testing.T) {
	for _, keyword := range []string{"before_script: [x]", "after_script: x", "image: a", "services: [a]", "cache: {paths: [a]}",
		"retry: 1", "artifacts: {paths: [a]}", "tags: [a]", "timeout: 1h", "hooks: {pre_get_sources_script: x}", "id_tokens: {A: {aud: x}}", "secrets: {A: {vault: x}}"} {
		for _, trigger := range []string{"g/p", "{include: c.yml}"} {
			o := optionsOf("main")
			o.Dir = directory(t, map[string]string{"c.yml": "j: {script: x}"})
			_, err := o.Parse("f.yml", []byte(".base: {"+keyword+"}\ndown: {extends: .base, trigger: "+trigger+"}"))
			require.ErrorContains(t, err, "cannot be used together with trigger", keyword)
			if strings.HasPrefix(keyword, "secrets") {
				continue // which default does not have
			}
			_, err = o.Parse("f.yml", []byte("default: {"+keyword+"}\ndown: {trigger: "+trigger+"}"))
			require.NoError(t, err, "it does not take that of default")
		}
	}
}

// The same of keywords that default has not, and what does not go with trigger in other ways.
func TestKeywordsOfOneJobThatAreNotForATrigger(t *testing.T) {
	for keyword, want := range map[string]string{
		"coverage: /x/":                       "coverage cannot be used together with trigger",
		"dependencies: []":                    "dependencies cannot be used together with trigger",
		"release: {tag_name: a}":              "release cannot be used together with trigger",
		"cirunner: {silence: 1m}":             "cirunner cannot be used together with trigger",
		"script: x":                           "trigger cannot be used together with script",
		"when: delayed, start_in: 1 minute":   "when: delayed cannot be used together with trigger",
		"rules: [{if: $A}], only: [branches]": "rules cannot be used together with only",
	} {
		_, err := optionsOf("main").Parse("f.yml", []byte("down: {trigger: g/p, "+keyword+"}"))
		require.ErrorContains(t, err, want)
	}
	for _, keyword := range []string{
		"stage: test", "needs: [j]", "variables: {A: b}", "inherit: {default: false}", "rules: [{when: always}]", "only: [branches]", "when: manual",
		"allow_failure: true", "parallel: 2", "resource_group: a", "interruptible: true", "environment: a", "manual_confirmation: sure?", "retry: null",
	} {
		_, err := optionsOf("main").Parse("f.yml", []byte("j: {script: x}\ndown: {trigger: g/p, "+keyword+"}"))
		require.NoError(t, err, keyword)
	}
}

func TestThePipelineHasAName(t *testing.T) {
	o := optionsOf("main")
	p, err := o.Parse("f.yml", []byte("variables: {WHAT: all}\nworkflow: {name: 'build $WHAT of $CI_COMMIT_BRANCH'}\nj: {script: x}"))
	require.NoError(t, err)
	require.Equal(t, "build all of main", p.Name)
}

func TestKeysBelowKeywordsThatMeanNothing(t *testing.T) {
	for file, want := range map[string]string{
		"j: {script: x, environment: {nmae: a}}": `1:30: there is no keyword "nmae" in environment; did you mean "name"?`,
		"j: {script: x, release: {tag: a}}":      `there is no keyword "tag" in release`,
		"j: {script: x, release: x}":             "release should be a mapping",
		"j: {script: x, environment: {on_stop: a, auto_stop_in: 1 day, kubernetes: {agent: x}}, release: {tag_name: a, assets: {}}}": "",
	} {
		_, err := Parse("f.yml", []byte(file))
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want, file)
	}
}
