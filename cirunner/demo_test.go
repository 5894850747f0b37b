//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

// outcomes returns the states of all jobs, as the table has them.
func outcomes(t *testing.T, stdout string) map[string]string {
	t.Helper()
	_, table, ok := strings.Cut(stdout, "\nJOB ")
	require.True(t, ok, "no table in\n%s", stdout)
	lines := strings.Split(table, "\n")
	stage, state, attempts := columns(lines[0])
	found := map[string]string{}
	for _, line := range lines[1:] {
		if line == "" {
			break
		}
		runes := []rune(line)
		found[strings.TrimSpace(string(runes[:stage]))] = strings.TrimSpace(string(runes[state:attempts]))
	}
	return found
}

// columns returns where columns begin; the first word of the header is cut off.
func columns(header string) (stage, state, attempts int) {
	at := func(name string) int { return len("JOB ") + strings.Index(header, name) }
	return at("STAGE"), at("STATE"), at("ATTEMPTS")
}

func TestTheDemo(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("demo.yml")
	require.NoError(t, err)
	require.Contains(t, string(data), `WEB_PORT: "18123"`)
	// With the limits of a machine that has other things to do: what is to be seen in
	// two seconds there may take longer here.
	p := newProject(t, strings.NewReplacer("18123", clitest.FreePort(t), "timeout: 2 seconds", "timeout: 10 seconds",
		"timeout: 1 minute", "timeout: 10 minutes", "10 seconds}", "5 minutes}", "silence: 30 seconds", "silence: 5 minutes", "grace: 1 second", "grace: 5 seconds").Replace(string(data)))
	run := p.start("-j", "8", "-manual", "publish")
	require.Equal(t, 0, run.Wait(), "%s%s", run.Stdout(), run.Stderr())
	out := run.Stdout()
	want := map[string]string{
		"sources": "success", "compile: [linux]": "success", "compile: [darwin]": "success",
		"unit 1/3": "success", "unit 2/3": "success", "unit 3/3": "success",
		"flaky": "success", "slow": "warning", "lint": "warning", "browse": "success",
		"alive": "success", "stuck": "warning", "later": "success",
		"package": "success", "alarm": "skipped", "tidy": "success", "publish": "success",
	}
	assert.Equal(t, want, outcomes(t, out))
	assert.Contains(t, row(t, out, "flaky"), "success 2 ")
	assert.Contains(t, row(t, out, "slow"), "job_execution_timeout: the script took longer than 10s, and ignored TERM: killed")
	assert.Contains(t, row(t, out, "lint"), "script_failure: exit status 3")
	assert.Contains(t, row(t, out, "stuck"), "stuck_or_timeout_failure: beat was not touched for")
	assert.Contains(t, out, "[slow] TERM? Not now.\n")
	assert.Contains(t, out, "[browse] the service says it works\n")
	assert.Contains(t, out, "[unit 2/3] two\n")
	assert.Contains(t, out, "[compile: [darwin]] the compiler for darwin is put away (status success)\n")
	assert.Contains(t, out, "[tidy] done for $5 a day\n")
	p.nothingIsLeft()
}

// Files of the structure of public ones; beside each stands what is to become of
// its jobs.
func TestPublicPipelines(t *testing.T) {
	files, err := filepath.Glob("testdata/public/*.yml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 3)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			wanted, err := os.ReadFile(strings.TrimSuffix(file, ".yml") + ".want")
			require.NoError(t, err)
			want, status := map[string]string{}, 0
			for line := range strings.Lines(string(wanted)) {
				if state, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
					want[name] = state
					if state == "failed" {
						status = 1
					}
				}
			}
			p := newProject(t, string(data))
			run := p.start("-host", "-j", "2")
			assert.Equal(t, status, run.Wait(), "%s%s", run.Stdout(), run.Stderr())
			assert.Equal(t, want, outcomes(t, run.Stdout()))
			p.nothingIsLeft()
		})
	}
}
