//go:build unix

package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

// A job that has broken its repository has not left nothing: its artifacts cannot be kept. No repository further up is asked.
func TestUntrackedArtifactsOfABrokenRepository(t *testing.T) {
	untracked := func(j *pipeline.Job) { j.Artifacts.Untracked = true }
	f := prepare(t, nil,
		jobOf("good", "touch made", untracked),
		jobOf("index", "touch made; echo torn > .git/index", untracked),
		jobOf("head", "touch made; rm .git/HEAD", untracked))
	f.git("init", "-q")
	require.NoError(t, f.run())
	f.is("good", plan.Succeeded, plan.None, "")
	assert.Contains(t, f.log("good"), "cirunner: 1 artifact kept\n")
	for _, name := range []string{"index", "head"} {
		f.is(name, plan.Failed, pipeline.SystemFailure, "cannot keep the artifacts: git ")
		assert.NoDirExists(t, f.Work.Path("artifacts", slug(f.Pipeline.Job(name))))
	}
}

// The runner asks git about a directory that is the job's: what the job has told git to run for that is not run.
func TestTheRepositoryOfAJobRunsNothing(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	f := prepare(t, nil, jobOf("a", `git config core.untrackedCache true; git update-index --untracked-cache
git config core.fsmonitor 'touch "$RAN";false'; git update-index --fsmonitor; rm -f "$RAN"; touch made`, func(j *pipeline.Job) {
		j.Artifacts.Untracked = true
		j.Variables = []pipeline.Variable{{Name: "RAN", Value: ran}}
	}))
	t.Setenv("RAN", ran)
	f.git("init", "-q")
	require.NoError(t, f.run())
	assert.Contains(t, f.log("a"), "cirunner: 1 artifact kept\n")
	assert.NoFileExists(t, ran)
}

// git runs git in the project.
func (f *fixture) git(args ...string) {
	f.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = f.dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	require.NoError(f.t, err, "%s", out)
}
