package parse

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
	"github.com/stretchr/testify/require"
)

// TestTheDemoShowsEveryFeature holds what the demo is for.
func TestTheDemoShowsEveryFeature(t *testing.T) {
	p := parseFile(t, "../../../demo.yml")
	has := func(what string, shows func(*pipeline.Job) bool) {
		for _, j := range p.Jobs {
			if shows(j) {
				return
			}
		}
		t.Errorf("the demo shows no %s", what)
	}
	has("before_script", func(j *pipeline.Job) bool { return len(j.Before) > 0 })
	has("after_script", func(j *pipeline.Job) bool { return len(j.After) > 0 })
	has("variable", func(j *pipeline.Job) bool { return len(j.Variables) > 0 })
	has("job that waits for a stage", func(j *pipeline.Job) bool { return j.Needs == nil && len(j.WaitsFor) > 0 })
	has("needs", func(j *pipeline.Job) bool { return len(j.Needs) > 0 })
	has("parallel", func(j *pipeline.Job) bool { return j.Nodes > 0 && strings.Contains(j.Name, "/") })
	has("matrix", func(j *pipeline.Job) bool { return j.Nodes > 0 && strings.Contains(j.Name, "[") })
	has("timeout of seconds", func(j *pipeline.Job) bool { return j.Timeout > 0 && j.Timeout < 1e10 && j.Watchdog.Grace > 0 })
	has("retry", func(j *pipeline.Job) bool { return j.Retry.Max > 0 && len(j.Retry.When) > 0 })
	has("allow_failure", func(j *pipeline.Job) bool { return j.AllowFailure.All && j.When == pipeline.OnSuccess })
	has("allow_failure:exit_codes", func(j *pipeline.Job) bool { return len(j.AllowFailure.ExitCodes) > 0 })
	for _, when := range []pipeline.When{pipeline.OnSuccess, pipeline.OnFailure, pipeline.Always, pipeline.Manual, pipeline.Delayed} {
		has("when: "+string(when), func(j *pipeline.Job) bool { return j.When == when })
	}
	has("interruptible", func(j *pipeline.Job) bool { return j.Interruptible })
	has("artifacts that go to another job", func(j *pipeline.Job) bool { return len(j.Fetch) > 0 })
	has("artifacts:exclude", func(j *pipeline.Job) bool { return len(j.Artifacts.Exclude) > 0 })
	has("service with a port", func(j *pipeline.Job) bool { return len(j.Services) > 0 && j.Services[0].Address != "" })
	has("healthcheck", func(j *pipeline.Job) bool { return len(j.Services) > 0 && j.Services[0].Health.Retries == 5 })
	has("silence", func(j *pipeline.Job) bool { return j.Watchdog.Silence > 0 })
	has("retry:exit_codes", func(j *pipeline.Job) bool { return len(j.Retry.ExitCodes) > 0 })
	has("artifacts:when", func(j *pipeline.Job) bool { return j.Artifacts.When == pipeline.OnFailure })
	has("raw variable", func(j *pipeline.Job) bool {
		return slices.ContainsFunc(j.Variables, func(v pipeline.Variable) bool { return v.Raw })
	})
	has("heartbeat", func(j *pipeline.Job) bool { return j.Watchdog.Heartbeat != "" })

	source, err := os.ReadFile("../../../demo.yml")
	require.NoError(t, err)
	for _, sign := range []string{"extends:", "default:", "stages:", "&slowly", "*slowly", "!reference", "<<:", "inherit:", "dependencies:", "when: never", "rules:"} {
		require.Contains(t, string(source), sign)
	}
}

// TestTheRepositorysPipelineRunsEveryCheck compares the pipeline with make test.
func TestTheRepositorysPipelineRunsEveryCheck(t *testing.T) {
	p := parseFile(t, "../../../../.gitlab-ci.yml")
	makefile, err := os.ReadFile("../../../../Makefile")
	require.NoError(t, err)
	// Each check has a name, and targets and variables of make; the tests of a module are the target unit.
	checks, target := []string{"needs", "unit"}, regexp.MustCompile(`^[a-z]+$`)
	for _, call := range regexp.MustCompile(`(?m)^\$\(eval \$\(call check,[a-z]+,([^,)]+)`).FindAllStringSubmatch(string(makefile), -1) {
		for word := range strings.FieldsSeq(call[1]) {
			if target.MatchString(word) {
				checks = append(checks, word)
			}
		}
	}
	require.Subset(t, checks, []string{"fmt", "vet", "apicheck", "fuzzshort"}, "has the way changed in which the Makefile names the checks?")
	var scripts []string
	modules := make(map[string]bool)
	for _, j := range p.Jobs {
		scripts = append(scripts, j.Script...)
		for _, v := range j.Variables {
			modules[v.Value] = modules[v.Value] || v.Name == "MODULE"
		}
	}
	for _, check := range checks {
		require.Regexp(t, `\bmake\b.* `+check+`\b`, strings.Join(scripts, "\n"), "no job does make %s", check)
	}
	work, err := os.ReadFile("../../../../go.work")
	require.NoError(t, err)
	for _, module := range regexp.MustCompile(`(?m)^\s+(\./\S+)$`).FindAllStringSubmatch(string(work), -1) {
		require.True(t, modules[module[1]], "no job tests the module %s", module[1])
	}
}

// TestPublicPipelinesAreRead holds that the files of the shape of public ones
// have the jobs whose ends are written down beside them.
func TestPublicPipelinesAreRead(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/public/*.yml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 3)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(strings.TrimSuffix(file, ".yml") + ".want")
			require.NoError(t, err)
			var jobs []string
			for line := range strings.Lines(string(want)) {
				state, name, _ := strings.Cut(strings.TrimSpace(line), " ")
				require.Contains(t, []string{"success", "failed", "warning", "skipped", "manual"}, state)
				jobs = append(jobs, name)
			}
			require.Equal(t, jobs, names(parseFile(t, file).Jobs))
		})
	}
}

func parseFile(t *testing.T, file string) *pipeline.Pipeline {
	p, err := ParseFile(file)
	require.NoError(t, err)
	checkPipeline(t, p)
	return p
}

// TestTheDialectIsDocumented holds that DIALECT.md names every keyword, and what
// to do without those that there are not.
func TestTheDialectIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../../../DIALECT.md")
	require.NoError(t, err)
	page := string(data)
	for name, k := range draft.JobKeywords {
		listed := "`" + name + "`"
		if k.InDefault {
			listed += "*"
		}
		if name != "start_in" {
			require.Regexp(t, `(?m)^\| (`+"`[a-z_]+`"+`, )?`+regexp.QuoteMeta(listed)+" ", page, "%s", name)
		}
		require.Contains(t, page, "`"+name+"`")
	}
	for name := range draft.GlobalKeywords {
		require.Contains(t, page, "`"+name+"`")
	}
	_, missing, found := strings.Cut(page, "## Not supported")
	require.True(t, found)
	for _, unsupported := range []map[string]string{draft.UnsupportedGlobally, draft.UnsupportedInJobs, draft.IgnoredInJobs} {
		for name := range unsupported {
			if name != "type" && name != "types" && name != "spec" {
				require.Contains(t, missing, "`"+name+"`")
			}
		}
	}
	for name := range draft.IgnoredInArtifacts {
		require.Contains(t, missing, "`artifacts:"+name+"`")
	}
}
