package pipeline

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

// Warnings are one for each keyword, in the order of the file, with the number of
// places; what many jobs inherit stands in one place.
func TestWarningsAreGrouped(t *testing.T) {
	const data = `default: {image: one}
.base: {tags: [a]}
a: {extends: .base, script: x, image: two}
b: {extends: .base, script: x, coverage: /x/, environment: prod}
c: {script: x, image: three, tags: [b]}
`
	p := right(t, data)
	var lines []string
	for _, w := range p.Warnings {
		lines = append(lines, w.String())
	}
	require.Equal(t, []string{
		"f.yml:1:11: warning: image (3 times, here first): " + noImage,
		"f.yml:2:9: warning: tags (2 times, here first): " + noTags,
		"f.yml:4:32: warning: coverage: " + noServer,
		"f.yml:4:47: warning: environment: " + noServer,
	}, lines)
	require.Len(t, wrong(t, data).Problems, 7, "for a strict parser each place is wrong")
}
