package parse

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
