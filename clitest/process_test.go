//go:build unix

package clitest

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProcessIsReadSignalledAndWaitedFor(t *testing.T) {
	dir := t.TempDir()
	p := Start(t, func(cmd *exec.Cmd) { cmd.Dir, cmd.Env = dir, append(cmd.Environ(), "WORD=hello world") }, "echoer")
	assert.Equal(t, dir, p.WaitFor(dir))
	assert.Equal(t, "hello world", p.WaitFor("lo wo"))
	p.WaitFor("last words")
	p.Signal(syscall.SIGUSR1)
	assert.Equal(t, "got user defined signal 1", p.WaitFor("got"))
	p.WaitForStderr("err user defined signal 1\n")
	p.WaitForStderr("user") // again: it is no reader
	p.Signal(syscall.SIGHUP)
	assert.Equal(t, 3, p.Wait())
	assert.Equal(t, dir+"\nhello world\nlast words\ngot user defined signal 1\ngot hangup\nunread\nand a line without an end", p.Stdout())
	assert.Equal(t, "err user defined signal 1\nerr hangup\n", p.Stderr())
}

func TestSignalThatEndsAProcessIsItsStatus(t *testing.T) {
	p := Start(t, nil, "echoer")
	p.WaitFor("last words")
	assert.NoError(t, syscall.Kill(p.Pid(), 0))
	p.Signal(syscall.SIGTERM)
	assert.Equal(t, 128+int(syscall.SIGTERM), p.Wait())
}

func TestWaitForTakesALineWithoutAnEnd(t *testing.T) {
	p := Start(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Environ(), "BRIEF=1") }, "echoer")
	assert.Equal(t, "last words", p.WaitFor("words"))
	assert.Equal(t, 0, p.Wait())
}

func TestProcessDoesNotOutliveItsTest(t *testing.T) {
	var p *Process
	t.Run("forgetful", func(t *testing.T) {
		p = Start(t, nil, "echoer")
		p.WaitFor("last words")
	})
	assert.ErrorIs(t, syscall.Kill(p.Pid(), 0), syscall.ESRCH)
}

func TestProgramThatHangsIsAbortedAndShowsWhere(t *testing.T) {
	p := Start(t, nil, "echoer")
	p.WaitFor("last words")
	text := failure(t, func(t testing.TB) {
		p.t = t
		time.AfterFunc(0, p.abort) // what happens after two minutes
		p.WaitFor("never")
	})
	assert.Contains(t, text, `before "never" was printed`)
	assert.Equal(t, 2, p.Wait())
	assert.Contains(t, p.Stderr(), "SIGABRT")
	assert.Contains(t, p.Stderr(), "clitest.echoer")
}

// A failing stands in for the testing.T of a test that is to fail.
type failing struct {
	testing.TB
	text string
}

func (f *failing) Helper() {}

func (f *failing) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

func (f *failing) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure runs test and returns what it failed with.
func failure(t *testing.T, test func(t testing.TB)) string {
	f := &failing{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		test(f)
	}()
	<-ended
	require.NotEmpty(t, f.text, "the test did not fail")
	return f.text
}

func TestWaitForFailsIfTheOutputEnds(t *testing.T) {
	text := failure(t, func(t testing.TB) { Start(t, nil, "exiter", "0").WaitFor("never") })
	assert.Contains(t, text, `EOF before "never" was printed; stdout:`+"\nout\n")
}

func TestWaitForStderrFailsIfTheOutputEnds(t *testing.T) {
	text := failure(t, func(t testing.TB) { Start(t, nil, "exiter", "0").WaitForStderr("never") })
	assert.Contains(t, text, `stderr ended before "never" was written`)
	assert.Contains(t, text, "stderr:\nerr\n")
}

func TestWhatCannotBeStartedOrSignalledFailsTheTest(t *testing.T) {
	assert.Contains(t, failure(t, func(t testing.TB) { Start(t, nil, "no-such-program") }), "no-such-program")
	p := Start(t, nil, "exiter", "0")
	assert.Equal(t, 0, p.Wait())
	assert.Contains(t, failure(t, func(t testing.TB) {
		p.t = t
		p.Signal(syscall.SIGTERM)
	}), "process already finished")
}
