//go:build unix

package report

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var jobs = []board.Job{
	{Name: "good <1>", Stage: "a", State: plan.Succeeded, Attempt: 2, Begin: begin, End: begin.Add(61 * time.Second)},
	{Name: "bäd", Stage: "a", State: plan.Failed, Attempt: 1, Begin: begin, End: begin.Add(100 * time.Millisecond), Cause: pipeline.ScriptFailure, Why: "exit \"1\"\x00\x1b[2J\nmore"},
	{Name: "runner", Stage: "b", State: plan.Failed, Attempt: 1, Begin: begin, End: begin, Cause: pipeline.SystemFailure, Why: "disk"},
	{Name: "warned", Stage: "b", State: plan.Warned, Attempt: 1, Begin: begin, End: begin, Cause: pipeline.ScriptFailure, Why: "exit status 2"},
	{Name: "stopped", Stage: "b", State: plan.Canceled, Attempt: 1, Begin: begin, End: begin, Cause: plan.Stopped, Why: "enough"},
	{Name: "never", Stage: "b", State: plan.Canceled, Why: "enough"},
}

func TestTable(t *testing.T) {
	assert.Equal(t, `JOB       STAGE  STATE     ATTEMPTS  TIME   CAUSE
good <1>  a      success   2         1m01s
stopped   b      canceled  1         0.0s   enough
never     b      canceled  -         -      enough
warned    b      warning   1         0.0s   script_failure: exit status 2
bäd       a      failed    1         0.1s   script_failure: exit "1"
runner    b      failed    1         0.0s   runner_system_failure: disk
`, Table(jobs))
	assert.Equal(t, `JOB   STAGE  STATE    ATTEMPTS  TIME  CAUSE
日本  x      waiting  -         -
ab    日     waiting  -         -
`, Table([]board.Job{{Name: "日本", Stage: "x"}, {Name: "ab", Stage: "日"}}), "wide characters are as wide as they look")
	assert.Equal(t, "1 success, 2 failed, 1 warning, 2 canceled, in 2h03m", Summary(jobs, 2*time.Hour+3*time.Minute))
}

func TestFailure(t *testing.T) {
	assert.NoError(t, Failure(nil))
	assert.NoError(t, Failure([]board.Job{jobs[0], jobs[3]}))
	assert.Equal(t, ErrJobs, Failure(jobs[:2]))
	assert.Equal(t, ErrSystem, Failure(jobs))
	assert.True(t, Left(jobs))
	assert.False(t, Left(jobs[:4]))
	assert.True(t, Left([]board.Job{{State: plan.Waiting}}), "the run has never begun")
}

func TestJUnit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.xml")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	require.NoError(t, WriteJUnit(path, "ci.yml", jobs, time.Minute))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var got suites
	require.NoError(t, xml.Unmarshal(data, &got))
	assert.Equal(t, 6, got.Tests)
	assert.Equal(t, 1, got.Failures)
	assert.Equal(t, 2, got.Errors)
	assert.Equal(t, 2, got.Skipped)
	assert.Equal(t, "good <1>", got.Suites[0].Cases[0].Name)
	assert.Equal(t, "2 attempts", got.Suites[0].Cases[0].Out)
	assert.Equal(t, &problem{`exit "1"`, "script_failure"}, got.Suites[0].Cases[1].Failure)

	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no temporary file is left")
	require.Error(t, WriteJUnit(filepath.Join(dir, "none", "x.xml"), "", jobs, 0))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "taken"), 0o755))
	require.Error(t, WriteJUnit(filepath.Join(dir, "taken"), "", jobs, 0))
	entries, err = os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 2)
}

// A pipe is written to and not replaced, as is a link to one: /dev/stdout is
// such a link.
func TestJUnitToAPipe(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink("pipe", link))
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0) // does not wait for a writer
	require.NoError(t, err)
	defer reader.Close()
	require.NoError(t, WriteJUnit(link, "ci.yml", jobs, time.Minute)) // less than a pipe holds
	info, err := os.Lstat(pipe)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, info.Mode().Type())
	begin := make([]byte, 5)
	_, err = io.ReadFull(reader, begin)
	require.NoError(t, err)
	assert.Equal(t, "<?xml", string(begin))
}
