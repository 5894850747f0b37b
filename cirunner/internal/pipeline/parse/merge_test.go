package parse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
	"github.com/stretchr/testify/require"
)

// A name that is too long for a message is none too long for the file.
func TestLongNamesAreWhatTheyAre(t *testing.T) {
	name := strings.Repeat("n", 70)
	data := "variables: {" + name + ": x, A: {value: " + name + ", options: [" + name + ", b]}, B: y}\n" +
		"j: {script: x, inherit: {variables: [" + name + ", A]}}\n"
	p, err := Parse("f.yml", []byte(data))
	require.NoError(t, err)
	require.Equal(t, []pipeline.Variable{{Name: name, Value: "x"}, {Name: "A", Value: name}}, p.Jobs[0].Variables)
}

// A reference sees what a job has by extends, and is no mapping that extends
// could merge.
func TestReferencesSeeWhatIsExtended(t *testing.T) {
	p, err := Parse("f.yml", []byte(`
.base: {script: [a], variables: {A: "1"}}
.mid: {extends: .base}
.other: {variables: {B: "2"}}
j: {extends: .base, script: [!reference [.mid, script], b], variables: !reference [.other, variables]}
`))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, p.Jobs[0].Script)
	require.Equal(t, []pipeline.Variable{{Name: "B", Value: "2"}}, p.Jobs[0].Variables)
}

// A keyword that is taken away need not be supported.
func TestANullTakesAwayWhatIsNotSupported(t *testing.T) {
	_, err := Parse("f.yml", []byte(".b: {script: x, rules: [{when: always}], image: y}\nj: {extends: .b, rules: ~, image: ~}\n"))
	require.NoError(t, err)
}

// The text of the file must not move the cursor of who looks at names.
func TestNamesHaveNoControlCharacters(t *testing.T) {
	found := wrong(t, `
stages: ["a\e[2J", "", test]
j: {script: x, parallel: {matrix: [{A: ["a\nb"]}]}}
`)
	require.Contains(t, found.Error(), `"a\x1b[2J" cannot be the name of a stage`)
	require.Contains(t, found.Error(), `"" cannot be the name of a stage`)
	require.Contains(t, found.Error(), `a part would be called "j: [a\nb]"`)
}

// Each part has a combination of its own, however long the combinations are.
func TestCombinationsShareNothing(t *testing.T) {
	p := right(t, "j: {script: x, parallel: {matrix: [{A: a, B: b, C: c, D: [1, 2], E: e, F: [3, 4], G: [5, 6]}]}}\n")
	var want []string
	for _, d := range []int{1, 2} {
		for _, f := range []int{3, 4} {
			for _, g := range []int{5, 6} {
				want = append(want, fmt.Sprintf("j: [a, b, c, %d, e, %d, %d]", d, f, g))
			}
		}
	}
	require.Equal(t, want, names(p.Jobs))
	for i, j := range p.Jobs {
		v := values(j)[3:7]
		require.Equal(t, want[i], fmt.Sprintf("j: [a, b, c, %s, e, %s, %s]", v[0][2:], v[2][2:], v[3][2:]))
	}
}

func TestTheLimitOfNeeds(t *testing.T) {
	file := func(n int) string {
		return many(n, "", "j%d: {script: x, stage: build}\n") + "all: {script: x, needs: [" + many(n, "", "j%d, ") + "]}\n"
	}
	require.Len(t, right(t, file(draft.MaxNeeds)).Job("all").Needs, draft.MaxNeeds)
	require.Contains(t, wrong(t, file(draft.MaxNeeds+1)).Error(), "f.yml:52:25: needs has 51 jobs: it may have 50")
}

// A part that is needed in two ways is needed with its artifacts if one says so.
func TestAPartThatIsNeededTwice(t *testing.T) {
	for _, needs := range []string{
		"{job: m, artifacts: false}, {job: 'm: [x]'}",
		"{job: 'm: [x]'}, {job: m, artifacts: false}",
	} {
		p := right(t, "m: {script: x, stage: build, artifacts: {paths: [a]}, parallel: {matrix: [{A: [x, y]}]}}\n"+
			"j: {script: x, needs: ["+needs+"]}\n")
		require.Equal(t, []string{"m: [x]", "m: [y]"}, names(p.Job("j").WaitsFor), needs)
		require.Equal(t, []string{"m: [x]"}, names(p.Job("j").Fetch), needs)
	}
}

// The order decides between a key and a merge key, as it does in GitLab: a job that is
// manual there must not run by itself here.
func TestTheLaterOfAKeyAndAMergeKeyWins(t *testing.T) {
	p := right(t, `
.ask: &ask {when: manual, variables: {A: "1"}}
.more: &more {stage: deploy}
ship:
  when: on_success
  script: x
  <<: *ask
  <<: *more
  variables: {B: "2"}
first: {<<: [*ask, *more], when: on_success, script: x}
`)
	require.Equal(t, pipeline.Manual, p.Job("ship").When)
	require.Equal(t, []pipeline.Variable{{Name: "B", Value: "2"}}, p.Job("ship").Variables)
	require.Equal(t, pipeline.OnSuccess, p.Job("first").When)
	require.Len(t, p.Warnings, 1)
	require.Equal(t, `f.yml:7:3: warning: << below a key: it replaces "when" of line 5, since it comes later; put << above the keys that are to win`, p.Warnings[0].String())
}
