//go:build unix

package main

import (
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
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

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"runstep": main})
}

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: clitest.Commands[*testscript.TestScript](), Setup: clitest.Setup[*testscript.Env]})
}

// A step is a runstep whose step has said "ready" and its process group.
type step struct {
	*clitest.Process
	t     *testing.T
	group int
}

// start runs a script, which has to print "ready" and its $$.
func start(t *testing.T, script string, flags ...string) *step {
	t.Helper()
	args := append([]string{"-name", "step", "-grace", "1m", "-linger", "1m", "-stale", "1h", "-answer", "1m"}, flags...)
	s := &step{t: t, Process: clitest.Start(t, nil, "runstep", append(args, "--", "bash", "-c", script)...)}
	group, err := strconv.Atoi(strings.Fields(s.WaitFor("ready"))[1])
	require.NoError(t, err)
	s.group = group
	return s
}

// end waits for the end and returns the exit status. Nothing is left of the group then.
func (s *step) end() int {
	s.t.Helper()
	status := s.Wait()
	assert.Empty(s.t, clitest.InGroup(s.t, s.group), "left in the group")
	return status
}

// stubborn answers TERM with 7.
const stubborn = `trap 'echo bye; exit 7' TERM; bash -c "echo ready $$; exec sleep 600" & wait`

// The step's own status goes before what has stopped it, unless that is asked for.
func TestTheStatusOfAStepThatTrapsTERMIsKept(t *testing.T) {
	for sig, cause := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		if signal.Ignored(sig) { // the tests run under nohup
			continue
		}
		for _, flags := range [][]string{nil, {"-cause"}} {
			s := start(t, stubborn, flags...)
			s.Signal(sig)
			want := 7
			if flags != nil {
				want = cause
			}
			assert.Equal(t, want, s.end())
			assert.Contains(t, s.Stdout(), "bye\n")
			text := "stopped by signal: " + sig.String()
			assert.Equal(t, "runstep: step: SIGTERM: "+text+"\nrunstep: step: exit status 7, "+text+"\n", s.Stderr())
		}
	}
}

// A runstep under nohup goes on without its terminal: HUP is not the signal that stops it.
func TestAHangupThatIsIgnoredStopsNothing(t *testing.T) {
	p := clitest.Start(t, nil, "bash", "-c", `trap "" HUP; exec runstep -cause -name step -grace 1m -- bash -c "echo ready; exec sleep 600"`)
	p.WaitFor("ready")
	p.Signal(syscall.SIGHUP)
	p.Signal(syscall.SIGTERM)
	assert.Equal(t, 143, p.Wait(), p.Stderr())
}

func TestAStepThatWasStoppedHasNotSucceeded(t *testing.T) {
	s := start(t, `trap 'exit 0' TERM; bash -c "echo ready $$; exec sleep 600" & wait`)
	s.Signal(os.Interrupt)
	assert.Equal(t, 130, s.end())
}

func TestAStepThatIgnoresTERMIsKilledAfterTheGrace(t *testing.T) {
	s := start(t, "trap '' TERM; sleep 600 & echo ready $$; wait", "-grace", "50ms")
	s.Signal(os.Interrupt)
	assert.Equal(t, 137, s.end())
	assert.Contains(t, s.Stderr(), "ended by SIGKILL, stopped by signal: interrupt")
}

func TestASecondSignalEndsTheGrace(t *testing.T) {
	s := start(t, "trap '' TERM; sleep 600 & echo ready $$; wait") // the grace is a minute
	s.Signal(os.Interrupt)
	s.WaitForStderr("SIGTERM")
	s.Signal(os.Interrupt)
	assert.Equal(t, 137, s.end())
}

func TestAGrandchildThatIgnoresTERMIsGone(t *testing.T) {
	s := start(t, `trap 'exit 7' TERM; (trap '' TERM; sleep 600 & echo ready $$; wait) & wait`)
	s.Signal(os.Interrupt)
	clitest.Eventually(t, "the leader has ended", func() bool { return syscall.Kill(s.group, 0) != nil })
	s.Signal(os.Interrupt) // the grace is a minute
	assert.Equal(t, 7, s.end())
	assert.Contains(t, s.Stderr(), "note: some of its processes had to be killed\n")
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
	assert.Equal(t, 0, s.end())
	assert.Contains(t, s.Stderr(), "note: a process that has left its group keeps its output open\n")
	assert.NotEmpty(t, clitest.Alive(t, pid))
}

// A reader that stands still does not have all of the log when the step has ended. How long that may last cannot be
// waited out here.
func TestAReaderThatStandsStillIsWaitedFor(t *testing.T) {
	c, err := (&config{stale: 1, every: 1, answer: 1}).command([]string{"true"})
	require.NoError(t, err)
	assert.Equal(t, 24*time.Hour, c.GiveUp)
}

// A script may come from a socket, as that of a shell which ssh starts does.
func TestAScriptFromASocketIsRun(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ours, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer ours.Close()
	theirs, err := l.Accept()
	require.NoError(t, err)
	stdin, err := theirs.(*net.TCPConn).File()
	require.NoError(t, err)
	p := clitest.Start(t, func(cmd *exec.Cmd) { cmd.Stdin = stdin }, "runstep", "-name", "step")
	require.NoError(t, stdin.Close())
	require.NoError(t, theirs.Close())
	_, err = io.WriteString(ours, "echo one; cat; echo two; exit 3\n")
	require.NoError(t, err)
	require.NoError(t, ours.(*net.TCPConn).CloseWrite())
	assert.Equal(t, 3, p.Wait(), p.Stderr())
	assert.Equal(t, "one\ntwo\n", p.Stdout())
	assert.Equal(t, "runstep: step: exit status 3\n", p.Stderr())
}
