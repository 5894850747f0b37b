package parse

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// A chosen job comes with all that it needs, and with nothing else; the pipeline
// it was chosen from stays as it was.
func TestOnlySomeJobs(t *testing.T) {
	p := right(t, `
stages: [build, test, deploy]
a: {stage: build, script: x, artifacts: {paths: [a]}}
b: {stage: build, script: x}
unit: {stage: test, script: x, parallel: 2, needs: [a]}
late: {stage: deploy, script: x}
ship: {stage: deploy, script: x, needs: [unit]}
off: {script: x, rules: [{if: $NOWHERE}]}
`)
	for want, chosen := range map[string][]string{
		"a, unit 1/2, unit 2/2, ship": {"ship"},
		"a, unit 2/2":                 {"unit 2/2"},
		"a, unit 1/2, unit 2/2":       {"unit"},
		"a, late":                     {"late"}, // the artifacts of a
		"a, b":                        {"b", "a"},
	} {
		only, err := p.Only(chosen)
		require.NoError(t, err)
		require.Equal(t, want, strings.Join(names(only.Jobs), ", "))
		checkPipeline(t, only)
	}
	require.Len(t, p.Jobs, 6)
	checkPipeline(t, p)
	_, err := p.Only([]string{"off"})
	require.EqualError(t, err, `the job "off" is not in this pipeline: rules: none of 1 matches`)
	_, err = p.Only([]string{"shi"})
	require.EqualError(t, err, `there is no job "shi"; did you mean "ship"?`)
}

// A manual job is not run because a job of a later stage would get its artifacts;
// one that is needed is.
func TestOnlyRunsNoManualJobUnasked(t *testing.T) {
	p := right(t, `
stages: [build, deploy, check]
build: {stage: build, script: x, artifacts: {paths: [a]}}
ship: {stage: deploy, script: x, when: manual, artifacts: {paths: [b]}}
look: {stage: check, script: x}
ask: {stage: check, script: x, needs: [ship]}
`)
	for job, want := range map[string][]string{"look": {"build", "look"}, "ask": {"build", "ship", "ask"}} {
		only, err := p.Only([]string{job})
		require.NoError(t, err)
		require.Equal(t, want, names(only.Jobs), job)
		checkPipeline(t, only)
	}
}

// asked are the names of the jobs that are asked for by being chosen.
func asked(p *pipeline.Pipeline) (names []string) {
	for _, j := range p.Jobs {
		if j.Asked {
			names = append(names, j.Name)
		}
	}
	return names
}

// Nobody has asked for the manual jobs of a child pipeline by naming the job that starts it, or one that
// needs that.
func TestOnlyAsksForNoJobOfAChildPipeline(t *testing.T) {
	o := optionsOf("main")
	o.Dir = directory(t, map[string]string{"c.yml": "m: {when: manual, script: x}\nneeds: {needs: [m], script: x}"})
	p, err := o.Parse("f.yml", []byte(`
down: {when: manual, trigger: {include: c.yml, strategy: depend}}
check: {needs: [down], script: x}
`))
	require.NoError(t, err)
	for job, want := range map[string][]string{
		"check": {"down", "check"}, "down": {"down"}, "down/m": {"down", "down/m"}, "down/needs": {"down", "down/m", "down/needs"},
	} {
		only, err := p.Only([]string{job})
		require.NoError(t, err)
		require.Equal(t, want, asked(only), job)
		checkPipeline(t, only)
	}
}

// A job of a pipeline two deep comes with all that starts it, and what that needs; the first of these comes with all that
// it starts.
func TestOnlyTwoPipelinesDeep(t *testing.T) {
	o := optionsOf("main")
	o.Dir = directory(t, map[string]string{
		"child.yml": "mid: {trigger: {include: grand.yml}}\nbeside: {script: x}", "grand.yml": "leaf: {script: x}\nother: {script: x}",
	})
	p, err := o.Parse("f.yml", []byte("a: {script: x}\nb: {script: x}\nup: {needs: [a], trigger: {include: child.yml}}\n"))
	require.NoError(t, err)
	whole := []string{"a", "up", "up/mid", "up/mid/leaf", "up/mid/other", "up/beside"}
	for _, c := range []struct{ chosen, want []string }{
		{[]string{"up/mid/leaf"}, []string{"a", "up", "up/mid", "up/mid/leaf"}},
		{[]string{"up/mid"}, []string{"a", "up", "up/mid", "up/mid/leaf", "up/mid/other"}},
		{[]string{"up"}, whole},
		{[]string{"up/mid/leaf", "up"}, whole},
		{[]string{"up", "up/mid/leaf"}, whole},
	} {
		only, err := p.Only(c.chosen)
		require.NoError(t, err)
		require.Equal(t, c.want, names(only.Jobs), c.chosen)
		checkPipeline(t, only)
	}
}
