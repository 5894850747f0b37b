//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/clitest"
	"github.com/ambit-go/ambit/examples/internal/remote"
	"github.com/ambit-go/ambit/examples/sshrun/sshserver"
)

func TestTheStatusOfTheScriptIsReported(t *testing.T) {
	for _, want := range []int{0, 3, 255} {
		r := trial{script: fmt.Sprintf("echo out; echo err >&2; exit %d", want), limits: unhurried()}.run(t)
		assert.Equal(t, "out\n", r.out.String())
		assert.Equal(t, "err\n", r.err.String())
		if want == 0 {
			assert.NoError(t, r.failure)
			continue
		}
		exit, ok := errors.AsType[*ExitError](r.failure)
		require.True(t, ok, "%v", r.failure)
		assert.Equal(t, ExitError{Status: want}, *exit)
	}
}

func TestTheSignalThatEndedTheScriptIsReported(t *testing.T) {
	for signal, status := range map[string]int{"TERM": 143, "KILL": 137, "SEGV": 139} {
		r := trial{script: "kill -" + signal + " $$", limits: unhurried()}.run(t)
		exit, ok := errors.AsType[*ExitError](r.failure)
		require.True(t, ok, "%v", r.failure)
		assert.Equal(t, signal, exit.Signal)
		assert.Equal(t, status, exit.ExitStatus())
	}
}

func TestACancelledScriptTellsTheCauseAndItsOwnEnd(t *testing.T) {
	for _, want := range []int{0, 7} {
		r := trial{
			script: fmt.Sprintf("echo pid $$; trap 'echo last words; exit %d' TERM", want) + forever,
			limits: unhurried(), cancel: true,
		}.run(t)
		assert.ErrorIs(t, r.failure, errUser)
		assert.Contains(t, r.out.String(), "last words\n")
		assert.Contains(t, r.failure.Error(), fmt.Sprintf("cancelled by the user; the script exited with status %d", want))
		if want != 0 {
			exit, ok := errors.AsType[*ExitError](r.failure)
			require.True(t, ok, "%v", r.failure)
			assert.Equal(t, want, exit.Status)
		}
		assert.Empty(t, clitest.InGroup(t, clitest.Number(t, r.out.String(), "pid")))
	}
}

func TestAScriptThatIgnoresTERMGetsKILL(t *testing.T) {
	limits := unhurried()
	limits.Term = soon
	r := trial{script: "echo pid $$; trap '' TERM" + forever, limits: limits, cancel: true}.run(t)
	assert.ErrorIs(t, r.failure, errUser)
	exit, ok := errors.AsType[*ExitError](r.failure)
	require.True(t, ok, "%v", r.failure)
	assert.Equal(t, "KILL", exit.Signal)
	assert.Empty(t, clitest.InGroup(t, clitest.Number(t, r.out.String(), "pid")))
}

func TestTheLimitOfTheScriptStopsIt(t *testing.T) {
	limits := unhurried()
	limits.Script = soon
	r := trial{script: "trap 'exit 7' TERM" + forever, limits: limits}.run(t)
	assert.ErrorIs(t, r.failure, context.DeadlineExceeded)
	// It may not have come to its trap.
	assert.True(t, errors.As(r.failure, new(*ExitError)), "%v", r.failure)
}

// When a server does not do what it is asked for, Run comes back after its
// stages, says so, and what was started on both sides ends.
func TestAServerThatDoesNotHelpIsAbandoned(t *testing.T) {
	for _, flaw := range []sshserver.Flaw{sshserver.IgnoreSignals, sshserver.Deaf, sshserver.NoEnd} {
		t.Run(string(flaw), func(t *testing.T) {
			limits := unhurried()
			limits.Term, limits.Kill = soon, soon
			r := trial{flaw: flaw, script: "echo pid $$" + forever, limits: limits, cancel: true}.run(t)
			assert.ErrorIs(t, r.failure, errUser)
			gone, ok := errors.AsType[*AbandonedError](r.failure)
			require.True(t, ok, "%v", r.failure)
			assert.True(t, gone.MayRun)
			assert.Contains(t, gone.Error(), "abandoned")
			r.stopServer()
			assert.Empty(t, clitest.InGroup(t, clitest.Number(t, r.out.String(), "pid")))
		})
	}
}

// A server that does not read blocks every packet: that of the script, and so
// that of the signals.
func TestAServerThatStopsReadingIsAbandoned(t *testing.T) {
	limits := unhurried()
	limits.Term, limits.Kill, limits.Script = soon, soon, soon
	r := trial{
		flaw:   sshserver.Stalled,
		script: strings.Repeat("# a long script\n", 1<<20),
		limits: limits,
		tune:   func(c net.Conn) { _ = c.(*net.TCPConn).SetWriteBuffer(4 << 10) },
	}.run(t)
	assert.ErrorIs(t, r.failure, context.DeadlineExceeded)
	assert.True(t, errors.As(r.failure, new(*AbandonedError)), "%v", r.failure)
}

func TestAServerThatNeverAnswersIsAbandoned(t *testing.T) {
	t.Parallel()
	for flaw, during := range map[sshserver.Flaw]string{
		sshserver.Silent:    "handshake",
		sshserver.NoSession: "opening a session",
		sshserver.NoShell:   "starting bash",
	} {
		t.Run(string(flaw), func(t *testing.T) {
			t.Parallel()
			limits := unhurried()
			limits.Connect = 3 * time.Second // what does answer has to do so in this time
			r := trial{flaw: flaw, script: "echo pid $$", limits: limits}.run(t)
			gone, ok := errors.AsType[*AbandonedError](r.failure)
			require.True(t, ok, "%v", r.failure)
			assert.False(t, gone.MayRun)
			assert.Contains(t, gone.Error(), during)
			assert.Empty(t, r.out.String())
		})
	}
}

func TestACancelledConnectTellsTheCause(t *testing.T) {
	now := make(chan struct{})
	close(now)
	r := trial{flaw: sshserver.Silent, limits: unhurried(), cancel: true, when: now}.run(t)
	assert.ErrorIs(t, r.failure, errUser)
}

// Nobody cancels here: the server is found out by its silence.
func TestAServerThatFallsSilentIsFoundOut(t *testing.T) {
	limits := unhurried()
	limits.KeepAlive, limits.Term, limits.Kill = soon, soon, soon
	r := trial{flaw: sshserver.Stalled, script: "sleep 600", limits: limits}.run(t)
	assert.True(t, errors.As(r.failure, new(*async.WatchdogError)), "%v", r.failure)
	assert.True(t, errors.As(r.failure, new(*AbandonedError)), "%v", r.failure)
}

func TestAServerThatAnswersIsLeftAlone(t *testing.T) {
	t.Parallel()
	limits := unhurried()
	limits.KeepAlive = time.Second // three for the answer, on a busy machine
	r := trial{script: "sleep 1.3; echo done", limits: limits}.run(t)
	assert.NoError(t, r.failure)
	assert.Equal(t, "done\n", r.out.String())
}

func TestAnEndThatIsNotToldIsNoSuccess(t *testing.T) {
	r := trial{flaw: sshserver.HangUp, script: "exit 0", limits: unhurried()}.run(t)
	assert.ErrorIs(t, r.failure, errLost)
}

func TestHalfAScriptIsNeverRun(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "marker")
	script := "touch " + marker + "\n" + strings.Repeat("# a long script\n", 64<<10)
	r := trial{script: script, limits: unhurried()}.run(t)
	require.NoError(t, r.failure)
	require.FileExists(t, marker)
	require.NoError(t, os.Remove(marker))

	r = trial{flaw: sshserver.Cut, script: script, limits: unhurried()}.run(t)
	assert.ErrorIs(t, r.failure, errLost)
	assert.NoFileExists(t, marker)
}

func TestACommandOfTheScriptDoesNotReadTheRestOfIt(t *testing.T) {
	r := trial{script: "cat\necho after", limits: unhurried()}.run(t)
	assert.NoError(t, r.failure)
	assert.Equal(t, "after\n", r.out.String())
}

func TestOutputThatIsHeldOpenDoesNotHangIt(t *testing.T) {
	limits := unhurried()
	limits.Output = soon
	r := trial{flaw: sshserver.HoldOutput, script: "echo last; exit 3", limits: limits}.run(t)
	assert.True(t, errors.As(r.failure, new(*ExitError)), "%v", r.failure)
	assert.Equal(t, "last\n", r.out.String())
	assert.Contains(t, r.notes.String(), "holds its output open")
}

func TestALotOfOutputArrives(t *testing.T) {
	t.Parallel()
	r := trial{script: "head -c 8388608 /dev/zero; echo end; exit 3", limits: unhurried()}.run(t)
	assert.True(t, errors.As(r.failure, new(*ExitError)), "%v", r.failure)
	assert.Len(t, r.out.String(), 8<<20+len("end\n"))
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestOutputThatCannotBeWrittenStopsTheScript(t *testing.T) {
	r := trial{
		script: "trap 'exit 7' TERM; while echo y; do :; done", limits: unhurried(),
		change: func(s *Step) { s.Stdout = writerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe }) },
	}.run(t)
	assert.ErrorIs(t, r.failure, io.ErrClosedPipe)
	exit, ok := errors.AsType[*ExitError](r.failure)
	require.True(t, ok, "%v", r.failure)
	assert.Equal(t, 7, exit.Status)
}

func TestASlowReaderGetsEverything(t *testing.T) {
	limits := unhurried()
	limits.Output = soon
	out := clitest.NewSign()
	r := trial{
		script: "seq 100000", limits: limits,
		change: func(s *Step) {
			s.Stdout = writerFunc(func(p []byte) (int, error) {
				if len(out.String()) == 0 {
					time.Sleep(6 * soon) // longer than output may be held open
				}
				return out.Write(p)
			})
		},
	}.run(t)
	assert.NoError(t, r.failure)
	assert.True(t, strings.HasSuffix(out.String(), "\n100000\n"))
	assert.Empty(t, r.notes.String())
}

func TestAReaderThatDoesNotReadDoesNotHangACancelledRun(t *testing.T) {
	limits := unhurried()
	limits.Output = soon
	entered, release := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) })
	first := true
	r := trial{
		script: "echo one; sleep 600", limits: limits, cancel: true, when: entered,
		change: func(s *Step) {
			s.Stdout = writerFunc(func(p []byte) (int, error) {
				if first {
					close(entered)
				}
				first = false
				<-release
				return len(p), nil
			})
		},
	}.run(t)
	assert.ErrorIs(t, r.failure, errUser)
	assert.ErrorIs(t, r.failure, remote.ErrStuck)
	assert.True(t, errors.As(r.failure, new(*async.StragglerError)), "%v", r.failure)
	assert.True(t, errors.As(r.failure, new(*ExitError)), "%v", r.failure)
}
