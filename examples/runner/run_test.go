//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"runner": main})
}

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: clitest.Commands[*testscript.TestScript](), Setup: clitest.Setup[*testscript.Env]})
}

// A started is a runner that runs a plan.
type started struct {
	*clitest.Process
	t   *testing.T
	out string
}

// start runs a plan.
func start(t *testing.T, plan string, flags ...string) *started {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "plan")
	require.NoError(t, os.WriteFile(file, []byte(plan), 0o600))
	s := &started{t: t, out: filepath.Join(dir, "out")}
	s.Process = clitest.Start(t, nil, "runner", append(append([]string{"-out", s.out}, flags...), file)...)
	return s
}

// log returns the log of a job.
func (s *started) log(job string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.out, "logs", job+".log"))
	if !os.IsNotExist(err) {
		require.NoError(s.t, err)
	}
	return string(text)
}

// waitForLog waits until the script of a job has said something.
func (s *started) waitForLog(job, text string) {
	s.t.Helper()
	clitest.Eventually(s.t, text, func() bool { return strings.Contains(s.log(job), text) })
}

// group returns the process group that the script of a job has printed.
func (s *started) group(job string) int {
	s.t.Helper()
	return clitest.Number(s.t, s.log(job), "pid")
}

// The first signal ends the script by TERM, and its after-script runs. Jobs that have not begun are canceled.
func TestASignalCancels(t *testing.T) {
	clitest.Signals(t, func(t *testing.T, sig syscall.Signal, status int) {
		p := start(t, `
job first
retry 3
	trap 'echo last words; exit 7' TERM; echo pid $$; echo ready; while :; do sleep 0.01; done
after
	echo tidied
job second
needs first
	echo never
`, "-grace", "1m")
		p.waitForLog("first", "ready\n")
		p.Signal(sig)
		assert.Equal(t, status, p.Wait(), p.Stderr())
		assert.Contains(t, p.log("first"), "last words\n== after-script\ntidied\n")
		assert.Equal(t, 1, strings.Count(p.log("first"), "== script"), "no attempt follows a cancel")
		assert.Contains(t, p.Stdout(), "runner: stopped by signal: "+sig.String()+": stopping; once more aborts\n")
		assert.Regexp(t, `first: canceled, \S+: script: exit status 7, stopped by signal: `+sig.String()+"\n", p.Stdout())
		assert.Contains(t, p.Stdout(), "canceled  first\ncanceled  second\n")
		assert.Empty(t, p.log("second"))
		assert.Empty(t, clitest.InGroup(t, p.group("first")))
	})
}

// The second signal ends the grace, and there is no after-script.
func TestASecondSignalAborts(t *testing.T) {
	p := start(t, "job deaf\n\ttrap '' TERM; echo pid $$; echo ready; while :; do sleep 0.01; done\nafter\n\techo never\n", "-grace", "1h")
	p.waitForLog("deaf", "ready\n")
	p.Signal(syscall.SIGINT)
	p.WaitFor("stopping; once more aborts")
	p.Signal(syscall.SIGTERM)
	assert.Equal(t, 130, p.Wait(), p.Stderr())
	assert.NotContains(t, p.log("deaf"), "never")
	assert.Regexp(t, `ended by SIGKILL, stopped by signal: (interrupt|terminated)\n`, p.Stdout()) // the second may overtake the first
	assert.Empty(t, clitest.InGroup(t, p.group("deaf")))
}

// An abort ends an after-script, too.
func TestASecondSignalEndsTheAfterScript(t *testing.T) {
	p := start(t, "job slow\n\techo ready; exec sleep 600\nafter\n\techo pid $$; exec sleep 600\n", "-grace", "1h")
	p.waitForLog("slow", "ready\n")
	p.Signal(syscall.SIGINT)
	p.waitForLog("slow", "pid ")
	p.Signal(syscall.SIGINT)
	assert.Equal(t, 130, p.Wait(), p.Stderr())
	assert.Contains(t, p.log("slow"), "[runner: the after-script: ")
	assert.Empty(t, clitest.InGroup(t, p.group("slow")))
}

// Limits are failures, not cancels, and name their kind.
func TestLimitsEndAScript(t *testing.T) {
	for setting, want := range map[string]string{
		"timeout": "failed, .*: script: .*limit ",
		"silent":  "failed, .*script: .*no heartbeat for ",
	} {
		for limit := 100 * time.Millisecond; ; limit *= 2 { // a script may be ended before it has said who it is
			plan := fmt.Sprint("job stuck\n", setting, " ", limit, "\n\ttrap '' TERM; echo pid $$; while :; do sleep 1; done\nafter\n\techo tidied\n")
			p := start(t, plan, "-grace", "10ms")
			assert.Equal(t, 1, p.Wait(), p.Stderr())
			assert.Regexp(t, want+limit.String(), p.Stdout())
			assert.Contains(t, p.log("stuck"), "tidied")
			if strings.Contains(p.log("stuck"), "pid ") {
				assert.Empty(t, clitest.InGroup(t, p.group("stuck")))
				break
			}
		}
	}
}

// A directory that may not be written to, as those of a module cache, does not stay behind. Root may write to all.
func TestReadOnlyDirectoriesAreRemoved(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	p := start(t, "job a\n\tmkdir -p mod/x; touch mod/x/f; chmod 555 mod/x mod\n")
	assert.Equal(t, 0, p.Wait(), p.Stdout())
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// The processes that a script has left behind are gone before the next attempt begins.
func TestAnAttemptIsJoinedBeforeTheNext(t *testing.T) {
	dir := t.TempDir()
	p := start(t, `
job again
retry 1
	cd `+dir+`
	if [ -e left ]; then [ -e gone ]; exit; fi
	(trap 'touch gone; exit' TERM; touch left; while :; do sleep 0.01; done) > /dev/null 2>&1 &
	until [ -e left ]; do sleep 0.01; done
	exit 3
`, "-grace", "1m")
	assert.Equal(t, 0, p.Wait(), p.Stdout())
	assert.Contains(t, p.Stdout(), "again: attempt 2\n")
}

// Jobs whose needs have not come about are skipped; the others go on.
func TestAFailureSkipsWhatNeedsIt(t *testing.T) {
	p := start(t, "job bad\n\tseq 1 30; echo -n the end; exit 3\njob next\nneeds bad\n\techo never\njob last\nneeds next\n\techo never\njob other\n\techo done\n")
	assert.Equal(t, 1, p.Wait())
	assert.Contains(t, p.Stdout(), "failed    bad\nskipped   next\nskipped   last\nsuccess   other\n")
	assert.Contains(t, p.Stdout(), "bad| 22\n")
	assert.Contains(t, p.Stdout(), "bad| 30\nbad| the end\n")
	assert.NotContains(t, p.Stdout(), "bad| 21\n")
	assert.Contains(t, p.Stderr(), "runner: not all jobs have succeeded\n")
}

// As many jobs run at a time as may, and no more.
func TestJobsRunBesideEachOther(t *testing.T) {
	dir := t.TempDir()
	meet := func(me, other string) string {
		return "\ttouch " + dir + "/" + me + "; until [ -e " + dir + "/" + other + " ]; do sleep 0.01; done\n"
	}
	p := start(t, "job a\n"+meet("a", "b")+"job b\n"+meet("b", "a"), "-j", "2")
	assert.Equal(t, 0, p.Wait(), p.Stdout())
	p = start(t, "job a\ntimeout 200ms\n\tuntil [ -e "+dir+"/c ]; do sleep 0.01; done\njob c\n\ttouch "+dir+"/c\n", "-j", "1")
	assert.Equal(t, 1, p.Wait(), p.Stdout())
	assert.Contains(t, p.Stdout(), "failed    a\nsuccess   c\n")
}
