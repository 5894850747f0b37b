//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

const (
	hundredth = 10 * time.Millisecond
	patience  = 2 * time.Minute // against a hang; nothing takes that long
)

func scriptParams() testscript.Params { return testscript.Params{} }

// working is a job that is stopped, one that would follow, and one beside it.
const working = `
stages: [one, two]
works:
  stage: one
  script: ["trap 'echo stopped; exit 5' TERM; bash -c 'echo up; exec sleep 1000' & wait"]
  after_script: [echo "after $CI_JOB_STATUS"]
beside:
  stage: one
  script: ["echo up; sleep 1000"]
follows:
  stage: two
  script: [echo never]
`

func TestTheFirstSignalCancels(t *testing.T) {
	t.Parallel()
	for sig, status := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		if signal.Ignored(sig) { // the tests run under nohup
			continue
		}
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			p := newProject(t, working)
			run := p.start("-j", "2", "-junit", "junit.xml", "-report", "report.html")
			run.WaitFor("] up")
			run.WaitFor("] up")
			run.Signal(sig)
			assert.Equal(t, status, run.Wait())
			out := run.Stdout()
			assert.Contains(t, out, "[works] stopped\n")
			assert.Contains(t, out, "[works] after canceled\n")
			assert.Contains(t, row(t, out, "works"), "canceled 1 ")
			assert.Contains(t, row(t, out, "beside"), "canceled 1 ")
			assert.Contains(t, row(t, out, "follows"), "canceled - - stopped by signal: "+sig.String())
			assert.Equal(t, "cirunner: stopped by signal: "+sig.String()+"\n", run.Stderr())
			assert.Contains(t, p.read("junit.xml"), `type="canceled"`)
			assert.Contains(t, p.read("report.html"), "It ended early: stopped by signal: "+sig.String())
			p.nothingIsLeft()
		})
	}
}

// A run under nohup goes on without its terminal: HUP is not heard, and QUIT, which comes after it on the same way, drains.
func TestAHangupThatIsIgnoredCancelsNothing(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
works: {script: ["echo up; until test -e $GO; do sleep 0.01; done; echo done"]}
follows: {stage: deploy, script: [echo never]}
`)
	mark := p.signalFile()
	run := clitest.Start(t, p.in, "bash", "-c", `trap "" HUP; exec cirunner ci.yml`)
	run.WaitFor("] up")
	run.Signal(syscall.SIGHUP)
	run.Signal(syscall.SIGQUIT)
	run.WaitFor("[follows] == canceled")
	require.NoError(t, os.WriteFile(mark, nil, 0o644))
	assert.Equal(t, 131, run.Wait())
	assert.Contains(t, run.Stdout(), "[works] done\n")
}

// Grace and after_script would take for ever.
func TestTheSecondSignalAborts(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
stubborn:
  script: ["trap '' TERM; echo up; sleep 1000; sleep 1000"]
  after_script: [echo never]
tidies up:
  script: ["echo up; sleep 1000"]
  after_script: ["trap '' TERM; sleep 0.4; echo tidying; sleep 1000; sleep 1000"]
`)
	run := p.start("-j", "2", "-grace", "1h")
	run.WaitFor("] up")
	run.WaitFor("] up")
	run.Signal(syscall.SIGINT)
	run.WaitFor("[tidies up] tidying")
	run.Signal(syscall.SIGINT)
	assert.Equal(t, 130, run.Wait())
	assert.NotContains(t, run.Stdout(), "[stubborn] never")
	assert.Contains(t, row(t, run.Stdout(), "stubborn"), "aborted: stopped by signal: interrupt")
	assert.Contains(t, row(t, run.Stdout(), "tidies up"), "canceled")
	p.nothingIsLeft()
}

func TestSIGQUITDrains(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
stages: [one, two]
works:
  stage: one
  script: ["echo up; until test -e $GO; do sleep 0.01; done; echo done"]
follows:
  stage: two
  script: [echo never]
`)
	mark := p.signalFile()
	run := p.start()
	run.WaitFor("] up")
	run.Signal(syscall.SIGQUIT)
	run.WaitFor("[follows] == canceled")
	require.NoError(t, os.WriteFile(mark, nil, 0o644))
	assert.Equal(t, 131, run.Wait())
	assert.Contains(t, run.Stdout(), "[works] done\n")
	assert.Contains(t, row(t, run.Stdout(), "works"), "success")
	assert.Contains(t, row(t, run.Stdout(), "follows"), "canceled - - drained: stopped by signal: quit")
	p.nothingIsLeft()
}

// A drain that has nothing to hold back changes nothing; a cancel after a drain
// cancels.
func TestSIGQUITThenSIGINT(t *testing.T) {
	t.Parallel()
	p := newProject(t, working)
	run := p.start("-j", "2")
	run.WaitFor("] up")
	run.WaitFor("] up")
	run.Signal(syscall.SIGQUIT)
	run.WaitFor("[follows] == canceled")
	run.Signal(syscall.SIGINT)
	assert.Equal(t, 130, run.Wait())
	assert.Contains(t, run.Stdout(), "[works] after canceled\n")
	p.nothingIsLeft()
}

func TestTheRunnerIsKilled(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
works:
  script: ["echo up $$; exec sleep 1000"]
`)
	killed := p.start()
	pid := lastInt(t, killed.WaitFor("[works] up"))
	killed.Signal(syscall.SIGKILL)
	assert.Equal(t, 128+9, killed.Wait())
	killIfFailed(t, pid)
	require.Len(t, processes(t, p.dir), 1)

	p.write("ci.yml", "works: {script: [echo again]}\n")
	next := p.start()
	assert.Equal(t, 0, next.Wait(), next.Stderr())
	id := strconv.Itoa(pid)
	assert.Contains(t, next.Stdout(), "== run 1 (process "+strconv.Itoa(killed.Pid())+") was killed")
	assert.Contains(t, next.Stdout(), "== run 1: process group "+id+" of \"works\" still runs: kill -- -"+id+", or use -kill-stale\n")
	assert.Contains(t, next.Stdout(), "[works] again\n")
	assert.Len(t, processes(t, p.dir), 1, "it was only told of")
	assert.DirExists(t, filepath.Join(p.dir, ".cirunner/1/jobs"), "the process works there")

	last := p.start("-kill-stale")
	assert.Equal(t, 0, last.Wait(), last.Stderr())
	assert.Contains(t, last.Stdout(), "== run 1: process group "+id+" of \"works\" still ran: killed\n")
	until(t, "the process that was left is gone", func() bool { return len(processes(t, p.dir)) == 0 })
	after := p.start()
	assert.Equal(t, 0, after.Wait(), after.Stderr())
	quiet := p.start()
	assert.Equal(t, 0, quiet.Wait(), quiet.Stderr())
	assert.NotContains(t, quiet.Stdout(), "was killed", "it has been told of")
	p.nothingIsLeft()
}

// killIfFailed kills a group of ours at the end of a test that has failed. Else it is gone, and its number may be another's.
func killIfFailed(t *testing.T, group int) {
	t.Cleanup(func() {
		if t.Failed() {
			_ = syscall.Kill(-group, syscall.SIGKILL)
		}
	})
}

func lastInt(t *testing.T, line string) int {
	t.Helper()
	fields := strings.Fields(line)
	n, err := strconv.Atoi(fields[len(fields)-1])
	require.NoError(t, err)
	return n
}

func TestAStepIsKilled(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
retried:
  script: ["echo up $$; test $CI_JOB_ATTEMPT = 2 || exec sleep 1000"]
  retry: {max: 1, when: script_failure}
killed:
  script: ["echo up $$; exec sleep 1000"]
`)
	run := p.start("-j", "1")
	require.NoError(t, syscall.Kill(lastInt(t, run.WaitFor("[retried] up")), syscall.SIGKILL))
	require.NoError(t, syscall.Kill(lastInt(t, run.WaitFor("[killed] up")), syscall.SIGKILL))
	assert.Equal(t, 1, run.Wait())
	assert.Contains(t, row(t, run.Stdout(), "retried"), "success 2")
	assert.Contains(t, row(t, run.Stdout(), "killed"), "script_failure: ended by SIGKILL")
	p.nothingIsLeft()
}

func TestAServiceIsKilled(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
killed:
  services: [{name: db, command: "echo up $$; exec sleep 1000"}]
  script: [sleep 1000]
  after_script: [echo after]
`)
	run := p.start()
	require.NoError(t, syscall.Kill(lastInt(t, run.WaitFor("[killed/db] up")), syscall.SIGKILL))
	assert.Equal(t, 1, run.Wait())
	assert.Contains(t, row(t, run.Stdout(), "killed"), "runner_system_failure: service db: has ended: service-db: ended by SIGKILL")
	p.nothingIsLeft()
}

// Whoever reads the output goes away: jobs are stopped, not left behind.
func TestTheReaderOfTheOutputGoesAway(t *testing.T) {
	t.Parallel()
	p := newProject(t, "talks: {script: [\"while echo line; do sleep 0.01; done\"], after_script: [\"touch $GO\"]}\n")
	mark := p.signalFile()
	cmd := exec.Command("bash", "-c", "set -o pipefail; cirunner ci.yml | head -n 5 > /dev/null")
	p.in(cmd)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 1, exit.ExitCode(), stderr.String())
	assert.Contains(t, stderr.String(), "cannot write: ")
	assert.FileExists(t, mark, "after_script has run")
	p.nothingIsLeft()
}

// The log is on a device that is always full.
func TestTheDiskIsFull(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	p := newProject(t, "unlucky: {script: [yes]}\nlucky: {script: [echo good]}\n")
	logs := filepath.Join(p.dir, "logs")
	require.NoError(t, os.Mkdir(logs, 0o755))
	require.NoError(t, os.Symlink("/dev/full", filepath.Join(logs, "001-unlucky.log")))
	run := p.start("-logs", logs)
	assert.Equal(t, 1, run.Wait())
	assert.Contains(t, row(t, run.Stdout(), "unlucky"), "runner_system_failure: cannot write the log: ")
	assert.Contains(t, run.Stdout(), "no space left on device")
	assert.Contains(t, row(t, run.Stdout(), "lucky"), "success")
	p.nothingIsLeft()
}
