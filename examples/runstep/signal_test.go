//go:build unix

package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/examples/internal/clitest"
)

// A step is a runstep whose step has said "ready" and its process group.
type step struct {
	*clitest.Process
	t      *testing.T
	group  int
	report string
}

// start runs a script, which has to print "ready" and its $$.
func start(t *testing.T, script string, flags ...string) *step {
	t.Helper()
	s := &step{t: t, report: filepath.Join(t.TempDir(), "report.json")}
	args := append([]string{"-name", "step", "-report", s.report, "-grace", "1m", "-linger", "1m"}, flags...)
	s.Process = clitest.Start(t, nil, "runstep", append(args, "--", "bash", "-c", script)...)
	group, err := strconv.Atoi(strings.Fields(s.WaitFor("ready"))[1])
	require.NoError(t, err)
	s.group = group
	return s
}

// end waits for the end and returns the exit status and the report. Nothing is
// left of the group then.
func (s *step) end() (int, report) {
	s.t.Helper()
	status := s.Wait()
	assert.Empty(s.t, clitest.InGroup(s.t, s.group), "left in the group")
	text, err := os.ReadFile(s.report)
	require.NoError(s.t, err)
	var r report
	require.NoError(s.t, json.Unmarshal(text, &r))
	assert.Equal(s.t, status, r.Status)
	assert.Equal(s.t, s.group, r.Pid)
	return status, r
}

func TestTheStatusOfAStepThatTrapsTERMIsKept(t *testing.T) {
	for sig, text := range map[syscall.Signal]string{
		syscall.SIGINT:  "stopped by signal: interrupt",
		syscall.SIGTERM: "stopped by signal: terminated",
		syscall.SIGHUP:  "stopped by signal: hangup",
	} {
		t.Run(text, func(t *testing.T) {
			s := start(t, `trap 'echo bye; exit 7' TERM; bash -c "echo ready $$; exec sleep 600" & wait`)
			s.Signal(sig)
			status, r := s.end()
			assert.Equal(t, 7, status)
			assert.Equal(t, 7, *r.Code)
			assert.Empty(t, r.Signal)
			assert.Equal(t, "signal", r.Reason)
			assert.Equal(t, text, r.Cause)
			assert.Contains(t, s.Stdout(), "bye\n")
			assert.Equal(t, "runstep: step: SIGTERM: "+text+"\nrunstep: step: exit status 7, stopped: "+text+"\n", s.Stderr())
		})
	}
}

func TestAStepThatWasStoppedHasNotSucceeded(t *testing.T) {
	s := start(t, `trap 'exit 0' TERM; bash -c "echo ready $$; exec sleep 600" & wait`)
	s.Signal(os.Interrupt)
	status, r := s.end()
	assert.Equal(t, 130, status)
	assert.Equal(t, 0, *r.Code)
	assert.Equal(t, "signal", r.Reason)
}

func TestAStepThatIgnoresTERMIsKilledAfterTheGrace(t *testing.T) {
	s := start(t, "trap '' TERM; sleep 600 & echo ready $$; wait", "-grace", "50ms")
	s.Signal(os.Interrupt)
	status, r := s.end()
	assert.Equal(t, 137, status)
	assert.Nil(t, r.Code)
	assert.Equal(t, "SIGKILL", r.Signal)
	assert.Equal(t, "stopped by signal: interrupt", r.Cause)
}

func TestASecondSignalEndsTheGrace(t *testing.T) {
	s := start(t, "trap '' TERM; sleep 600 & echo ready $$; wait") // the grace is a minute
	s.Signal(os.Interrupt)
	s.WaitForStderr("SIGTERM")
	s.Signal(os.Interrupt)
	status, r := s.end()
	assert.Equal(t, 137, status)
	assert.Equal(t, "SIGKILL", r.Signal)
}

func TestAGrandchildThatIgnoresTERMIsGone(t *testing.T) {
	s := start(t, `trap 'exit 7' TERM; (trap '' TERM; sleep 600 & echo ready $$; wait) & wait`)
	s.Signal(os.Interrupt)
	s.leaderEnds()
	s.Signal(os.Interrupt) // the grace is a minute
	status, r := s.end()   // which looks at the group
	assert.Equal(t, 7, status)
	assert.Equal(t, []string{"some of its processes had to be killed"}, r.Notes)
}

// leaderEnds waits until the first process of the group has ended.
func (s *step) leaderEnds() {
	s.t.Helper()
	clitest.Eventually(s.t, "the leader has ended", func() bool { return syscall.Kill(s.group, 0) != nil })
}

func TestTheDemonstration(t *testing.T) {
	s := clitest.Start(t, nil, "runstep", "-timeout", "1h", "-grace", "1m", "-demo")
	s.WaitFor(":")
	s.WaitFor(":") // both know what to do about TERM
	s.Signal(os.Interrupt)
	s.WaitFor("step: got TERM, cleaning up")
	s.Signal(os.Interrupt)
	assert.Contains(t, []int{7, 137}, s.Wait())
	assert.Contains(t, s.Stderr(), "runstep: demo: SIGKILL: stopped by signal: interrupt\n")
}

func TestAReaderSeesTheEndAlthoughADaemonLives(t *testing.T) {
	s := start(t, `read -r pid < <(exec setsid bash -c 'echo $$; exec sleep 600 >&2'); echo ready $$; echo daemon $pid`, "-linger", "50ms")
	line := s.WaitFor("daemon") // our end of the pipe, which the daemon must not have
	pid, err := strconv.Atoi(strings.Fields(line)[1])
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	status, r := s.end()
	assert.Equal(t, 0, status)
	assert.Equal(t, []string{"a process that has left its group keeps its output open"}, r.Notes)
	assert.NotEmpty(t, clitest.Alive(t, pid))
}

func TestNoOutputIsLost(t *testing.T) {
	const size = 8 << 20
	cmd := exec.Command("runstep", "--", "head", "-c", strconv.Itoa(size), "/dev/zero")
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	sum := sha256.New()
	_, err = io.Copy(sum, stdout)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	assert.Equal(t, fmt.Sprintf("%x", sha256.Sum256(make([]byte, size))), fmt.Sprintf("%x", sum.Sum(nil)))
}
