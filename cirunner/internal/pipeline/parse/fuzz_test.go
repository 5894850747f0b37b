package parse

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// FuzzParse holds Parse to its promises for any file: no panic, the same answer
// every time, errors at places that exist and in their order, and a pipeline in
// which everything is resolved, for runs of every kind.
func FuzzParse(f *testing.F) {
	for _, source := range seeds(f) {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("f.yml", data)
		again, errAgain := Parse("f.yml", data)
		require.Equal(t, err, errAgain)
		require.True(t, reflect.DeepEqual(p, again), "a second Parse has another result")
		if err != nil {
			require.Nil(t, p)
			checkErrors(t, err.(*pipeline.Errors), string(data))
			return
		}
		checkPipeline(t, p)
		checkKinds(t, data, p)
	})
}

// checkKinds asserts what runs of other kinds have in common with a first: what one warns
// of a strict one refuses, and jobs of .pre and .post alone are no pipeline.
func checkKinds(t *testing.T, data []byte, p *pipeline.Pipeline) {
	_, err := Options{Strict: true}.Parse("f.yml", data)
	require.Equal(t, len(p.Warnings) > 0, err != nil, "strict: %v, warnings: %v", err, p.Warnings)
	for _, kind := range []string{"tag", "mr", "schedule"} {
		o := optionsOf(kind)
		o.Cache = true
		other, err := o.Parse("f.yml", data)
		if err != nil {
			continue // needs of what is not in this one, say
		}
		checkPipeline(t, other)
		inside := func(j *pipeline.Job) bool { return j.Stage != ".pre" && j.Stage != ".post" }
		require.Equal(t, len(other.Jobs) > 0, slices.ContainsFunc(other.Jobs, inside))
	}
}

// seeds are the pipelines and the wrong files of the other tests.
func seeds(tb testing.TB) [][]byte {
	var all [][]byte
	for _, pattern := range []string{"testdata/*/*.yml", "../../../*.yml", "../../../testdata/public/*.yml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(tb, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(tb, err)
			all = append(all, data)
		}
	}
	shapes, err := filepath.Glob("../../../testdata/public/*.txtar")
	require.NoError(tb, err)
	for _, file := range shapes {
		archive, err := txtar.ParseFile(file)
		require.NoError(tb, err)
		all = append(all, archive.Files[0].Data)
	}
	return all
}

func checkErrors(t *testing.T, e *pipeline.Errors, data string) {
	require.NotEmpty(t, e.Problems)
	require.LessOrEqual(t, len(e.Problems), tree.MaxReported)
	require.True(t, slices.IsSortedFunc(e.Problems, func(a, b pipeline.Problem) int {
		if a.File != b.File {
			return 0 // one that is included comes after the one that includes it
		}
		return tree.Mark{Line: a.Line, Column: a.Column}.Compare(tree.Mark{Line: b.Line, Column: b.Column})
	}))
	lines := strings.Count(data, "\n") + strings.Count(data, "\r") + strings.Count(data, "\u2028") +
		strings.Count(data, "\u2029") + strings.Count(data, "\u0085") + 2
	for _, p := range e.Problems {
		if p.File != e.Problems[0].File || p.File != "f.yml" {
			continue // a file that is included
		}
		require.True(t, p.Line >= 1 && p.Line <= lines && p.Column >= 1, "the place %s is not in the file", p)
		require.NotEmpty(t, p.Text)
		require.LessOrEqual(t, utf8.RuneCountInString(p.Text), tree.MaxText+1)
		require.LessOrEqual(t, p.Caret, tree.MaxSource)
	}
}

// checkPipeline asserts what the engine relies on.
func checkPipeline(t *testing.T, p *pipeline.Pipeline) {
	require.Equal(t, p.Why != "", len(p.Jobs) == 0)
	require.LessOrEqual(t, len(p.Jobs), draft.MaxJobs)
	names := make(map[string]bool)
	for i, j := range p.Jobs {
		require.False(t, names[j.Name], "two jobs %q", j.Name)
		names[j.Name] = true
		require.Equal(t, i, j.Index)
		require.Equal(t, p.Stages[j.StageIndex], j.Stage)
		checkJob(t, p, j)
	}
	requireAcyclic(t, p)
}

func checkJob(t *testing.T, p *pipeline.Pipeline, j *pipeline.Job) {
	require.NotEmpty(t, strings.TrimSpace(j.Name))
	require.NotEmpty(t, j.Script)
	require.NotEqual(t, pipeline.Never, j.When)
	require.Contains(t, []pipeline.When{pipeline.OnSuccess, pipeline.OnFailure, pipeline.Always, pipeline.Manual, pipeline.Delayed}, j.When)
	require.Equal(t, j.When == pipeline.Delayed, j.StartIn > 0)
	require.GreaterOrEqual(t, j.Timeout, time.Duration(0))
	require.True(t, j.Retry.Max >= 0 && j.Retry.Max <= draft.MaxRetries)
	require.True(t, j.Node >= 0 && j.Node <= j.Nodes)
	variables := make(map[string]bool)
	for _, v := range j.Variables {
		require.False(t, variables[v.Name], "%s twice", v.Name)
		require.Regexp(t, pipeline.VariableName, v.Name)
		require.NotContains(t, v.Value, "\x00")
		variables[v.Name] = true
	}
	for _, s := range j.Services {
		require.NotEmpty(t, s.Name)
		require.NotEmpty(t, strings.TrimSpace(s.Command))
		require.Greater(t, s.Timeout, time.Duration(0))
	}
	for _, need := range j.Needs {
		require.Same(t, p.Jobs[need.Job.Index], need.Job)
		require.Contains(t, j.WaitsFor, need.Job)
	}
	for _, other := range j.Fetch {
		require.Contains(t, j.WaitsFor, other)
	}
	for _, other := range j.WaitsFor {
		if other.Parent == j.Parent { // stages of a child pipeline come behind that of the job which starts it
			require.LessOrEqual(t, other.StageIndex, j.StageIndex)
		}
	}
}

func requireAcyclic(t *testing.T, p *pipeline.Pipeline) {
	done := make(map[*pipeline.Job]bool)
	for range p.Jobs {
		for _, j := range p.Jobs {
			if !done[j] && !slices.ContainsFunc(j.WaitsFor, func(o *pipeline.Job) bool { return !done[o] }) {
				done[j] = true
			}
		}
		if len(done) == len(p.Jobs) {
			return
		}
	}
	require.Empty(t, p.Jobs, "some jobs wait for each other")
}
