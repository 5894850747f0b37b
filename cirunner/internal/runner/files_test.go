//go:build unix

package runner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

// A variable of the project may be a file that nobody else can read, and that is gone when
// the job has ended; no report changes it, and what is masked is not in logs.
func TestProjectVariablesOfAJob(t *testing.T) {
	project := func(j *pipeline.Job) {
		j.Variables = []pipeline.Variable{
			{Name: "KEY", Value: "line one $HOME\nline two\n", Raw: true, Masked: true, File: true, Fixed: true},
			{Name: "TOKEN", Value: "hunter2000", Masked: true, Fixed: true}, {Name: "FREE", Value: "job"},
			{Name: "HEADER", Value: "Bearer $TOKEN"},
		}
	}
	f := prepare(t, nil,
		jobOf("a", "printf 'TOKEN=other\\nFREE=reported\\n' >vars", project, func(j *pipeline.Job) { j.Artifacts.Dotenv = []string{"vars"} }),
		jobOf("b", `stat -c "mode %a" "$KEY"; wc -l <"$KEY"; cat "$KEY"; echo "$FREE, $HEADER, ${#TOKEN}"; echo "$KEY" >"$OUT"`, project, after("a"), func(j *pipeline.Job) {
			j.Variables = append(j.Variables, pipeline.Variable{Name: "OUT", Value: t.TempDir() + "/path"})
		}),
		jobOf("c", "exit 1", func(j *pipeline.Job) { j.Missing = []string{"CI_JOB_TOKEN"} }))
	require.NoError(t, f.run())
	f.is("b", plan.Succeeded, plan.None, "")
	log := f.log("b")
	assert.Contains(t, log, "mode 600\n2\n[MASKED]")
	assert.Contains(t, log, "reported, Bearer [MASKED], 10\n")
	assert.NotContains(t, log, "line two")
	assert.NoDirExists(t, f.Work.Path("scripts", "002-b", "files"))
	assert.Contains(t, f.log("c"), "cirunner: the scripts need CI_JOB_TOKEN, which only a server issues: give it with -variables or -var\n")
}
