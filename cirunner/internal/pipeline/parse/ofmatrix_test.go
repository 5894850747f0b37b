package parse

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// needsOf returns the names of the jobs that a job waits for.
func needsOf(p *pipeline.Pipeline, job string) []string { return names(p.Job(job).WaitsFor) }

// Each part of a matrix may need the part that has its own values.
func TestNeedsOfTheSamePartOfAMatrix(t *testing.T) {
	const file = "b: {stage: build, script: x, parallel: {matrix: [{OS: [a, b], go-version: [c, d]}]}}\n" +
		"t: {script: x, parallel: {matrix: [{OS: [a, b]}]}, needs: [{job: b, parallel: {matrix: [{OS: '$[[ matrix.OS ]]', go-version: d}]}}]}"
	for _, header := range []string{"", "spec: {}\n---\n", "spec: {inputs: {A: {default: x}}}\n---\n"} {
		p := right(t, header+file)
		require.Equal(t, []string{"b: [a, d]"}, needsOf(p, "t: [a]"))
		require.Equal(t, []string{"b: [b, d]"}, needsOf(p, "t: [b]"))
		require.NotContains(t, values(p.Job("b: [a, c]")), "go-version=c", "bash cannot export it")
	}
}

// So may needs of a rule, and of the pipeline that has started this one.
func TestNeedsOfTheSamePartElsewhere(t *testing.T) {
	const parts, same = "parallel: {matrix: [{OS: [a, b]}]}", "parallel: {matrix: [{OS: '$[[matrix.OS]]'}]}"
	p := right(t, "b: {stage: build, script: x, "+parts+"}\nt: {script: x, "+parts+", rules: [{when: always, needs: [{job: b, "+same+"}]}]}")
	require.Equal(t, []string{"b: [b]"}, needsOf(p, "t: [b]"))

	o := optionsOf("main")
	o.Dir = directory(t, map[string]string{"c.yml": "j: {script: x, " + parts + ", needs: [{pipeline: $P, job: b, " + same + "}]}"})
	p, err := o.Parse("f.yml", []byte("b: {script: x, "+parts+", artifacts: {paths: [o]}}\ndown: {needs: [b], trigger: {include: c.yml}}"))
	require.NoError(t, err)
	require.Equal(t, []string{"b: [a]"}, names(p.Job("down/j: [a]").Fetch))
}

// A value that the part does not have, and a part that there is not, are errors with the place.
func TestNeedsOfPartsThatAreNotThere(t *testing.T) {
	const b = "b: {stage: build, script: x, parallel: {matrix: [{OS: [a, b]}]}}\n"
	for data, want := range map[string]string{
		"t: {script: x, needs: [{job: b, parallel: {matrix: [{OS: '$[[ matrix.OS ]]'}]}}]}":                                     `the matrix of the job has no "OS"`,
		"t: {script: x, parallel: {matrix: [{OS: [c]}]}, needs: [{job: b, parallel: {matrix: [{OS: '$[[ matrix.OS ]]'}]}}]}":    `"t" needs a part of "b" that its matrix does not have`,
		"t: {script: x, parallel: {matrix: [{OS: [a]}]}, needs: [{job: none, parallel: {matrix: [{OS: '$[[ matrix.OS ]]'}]}}]}": `"none", which is not in the file`,
	} {
		_, err := Parse("f.yml", []byte(b+data))
		require.ErrorContains(t, err, want)
	}
}

// An optional need of a part that is not there is none; one of a part that rules keep out says so.
func TestNeedsOfPartsThatAreLeftOut(t *testing.T) {
	const need = ", parallel: {matrix: [{OS: '$[[ matrix.OS ]]'}]}}]}"
	p := right(t, "b: {stage: build, script: x, parallel: {matrix: [{OS: [a, b]}]}}\n"+
		"t: {script: x, parallel: {matrix: [{OS: [a, c]}]}, needs: [{job: b, optional: true"+need)
	require.Equal(t, []string{"b: [a]"}, needsOf(p, "t: [a]"))
	require.Empty(t, needsOf(p, "t: [c]"))
	_, err := Parse("f.yml", []byte("b: {stage: build, script: x, parallel: {matrix: [{OS: [a, b]}]}, rules: [{if: $OS == 'a'}]}\n"+
		"t: {script: x, parallel: {matrix: [{OS: [a, b]}]}, needs: [{job: b"+need))
	require.ErrorContains(t, err, `"t" needs a part of "b" that is not in this pipeline`)
	require.ErrorContains(t, err, "say optional: true")
}

// A script has no such places: the shell would get them as they are written, which is told.
func TestAPlaceOfAMatrixInAScript(t *testing.T) {
	for _, header := range []string{"", "spec: {}\n---\n"} {
		p := right(t, header+"t: {script: ['echo $[[ matrix.OS ]]'], parallel: {matrix: [{OS: [a]}]}}")
		require.Equal(t, []string{"echo $[[ matrix.OS ]]"}, p.Jobs[0].Script)
		require.Len(t, p.Warnings, 1)
		require.Equal(t, "$[[ matrix.NAME ]] in a script", p.Warnings[0].Keyword)
	}
}

// A value that looks like the place of another is a value.
func TestAValueThatLooksLikeAPlace(t *testing.T) {
	p := right(t, "b: {stage: build, script: x, parallel: {matrix: [{OS: ['$[[ matrix.OS ]]', b]}]}}\n"+
		"t: {script: x, parallel: {matrix: [{OS: ['$[[ matrix.OS ]]']}]}, needs: [{job: b, parallel: {matrix: [{OS: '$[[ matrix.OS ]]'}]}}]}")
	require.Equal(t, []string{"b: [$[[ matrix.OS ]]]"}, needsOf(p, "t: [$[[ matrix.OS ]]]"))
}

// Dependencies are judged by the needs that a job has in the end.
func TestDependenciesBesideNeedsOfRules(t *testing.T) {
	const b = "stages: [build, test, deploy]\nb: {stage: build, script: x, artifacts: {paths: [o]}}\nd: {stage: deploy, script: x}\n"
	p := right(t, b+"j: {script: x, needs: [], dependencies: [b], rules: [{when: always, needs: [b]}]}")
	require.Empty(t, p.Warnings)
	require.Equal(t, []string{"b"}, names(p.Job("j").Fetch))
	p = right(t, b+"j: {script: x, dependencies: [b], rules: [{when: always, needs: []}]}")
	require.Len(t, p.Warnings, 1)
	require.Empty(t, p.Job("j").Fetch)
	for data, want := range map[string]string{
		"j: {script: x, needs: [], dependencies: [d]}":                                  "it should be in an earlier stage",
		"j: {script: x, needs: [{project: a/b, job: c, ref: main}], dependencies: [b]}": "it should be among its needs",
	} {
		_, err := Parse("f.yml", []byte(b+data))
		require.ErrorContains(t, err, want)
	}
}

// Nothing waits for what dependencies name beside an empty needs.
func TestDependenciesBesideNeedsThatAreEmpty(t *testing.T) {
	p := right(t, "b: {stage: build, script: x, artifacts: {paths: [o]}}\nj: {script: x, needs: [], dependencies: [b]}")
	require.Empty(t, p.Job("j").WaitsFor)
	require.Empty(t, p.Job("j").Fetch)
	require.Len(t, p.Warnings, 1)
	require.Equal(t, "dependencies beside needs: []", p.Warnings[0].Keyword)
	_, err := Parse("f.yml", []byte("b: {stage: build, script: x}\nc: {stage: build, script: x}\nj: {script: x, needs: [c], dependencies: [b]}"))
	require.ErrorContains(t, err, "it should be among its needs")
}

// Scripts would have the places of a job's inputs as they are written.
func TestInputsOfAJobAreRefused(t *testing.T) {
	_, err := Parse("f.yml", []byte("j: {script: 'echo ${{ job.inputs.a }}', inputs: {a: {default: x}}}"))
	require.ErrorContains(t, err, "the inputs of a job are not supported")
	require.ErrorContains(t, err, "use variables")
}
