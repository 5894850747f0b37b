//go:build unix

package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/examples/internal/clitest"
)

// signalled starts the program with a script that goes on for ever, signals the
// program when the script has begun, and returns its exit status and errors.
func signalled(t *testing.T, sig os.Signal, script string, flags ...string) (status int, stdout, stderr string) {
	t.Helper()
	p := clitest.Start(t, nil, "sshrun", append(flags, "-c", "echo pid $$; "+script+forever)...)
	p.WaitFor("ready")
	p.Signal(sig)
	status = p.Wait()
	assert.Empty(t, clitest.InGroup(t, clitest.Number(t, p.Stdout(), "pid")), "left behind")
	return status, p.Stdout(), p.Stderr()
}

func TestASignalIsPassedOnAndBothEndsAreTold(t *testing.T) {
	t.Parallel()
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		status, stdout, stderr := signalled(t, sig, "trap 'echo cleaning up; exit 7' TERM")
		assert.Equal(t, want, status)
		assert.Contains(t, stdout, "cleaning up\n")
		assert.Equal(t, "sshrun: stopped by signal: "+sig.String()+"; the script exited with status 7\n", stderr)
	}
}

func TestASignalEndsAScriptThatIgnoresTERM(t *testing.T) {
	status, _, stderr := signalled(t, syscall.SIGTERM, "trap '' TERM", "-term", "100ms")
	assert.Equal(t, 143, status)
	assert.Contains(t, stderr, "signal KILL ended the script")
}

func TestASignalEndsTheProgramWhateverTheServerDoes(t *testing.T) {
	t.Parallel()
	for _, flaw := range []string{"ignore-signals", "deaf", "no-end"} {
		status, _, stderr := signalled(t, syscall.SIGINT, "true", "-server", flaw, "-term", "100ms", "-kill", "100ms")
		assert.Equal(t, 255, status, flaw)
		assert.Contains(t, stderr, "stopped by signal: interrupt; abandoned", flaw)
	}
}

// A closed pipe must not end the program before the script has been told.
func TestAReaderThatGoesAwayStopsTheScript(t *testing.T) {
	cmd := exec.Command("bash", "-c", `sshrun -c 'trap "exit 7" TERM; echo ready; while echo y; do :; done' | head -n 1; exit "${PIPESTATUS[0]}"`)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	assert.Equal(t, "ready\n", string(out))
	assert.Equal(t, 141, cmd.ProcessState.ExitCode())
	assert.Contains(t, stderr.String(), "cannot write the output")
	assert.Contains(t, stderr.String(), "broken pipe; the script exited with status 7")
}

// The time after TERM is longer than any test.
func TestASecondSignalEndsTheGrace(t *testing.T) {
	t.Parallel()
	p := clitest.Start(t, nil, "sshrun", "-term", "1h", "-c", "echo pid $$; trap 'echo I stay' TERM"+forever)
	p.WaitFor("ready")
	p.Signal(syscall.SIGINT)
	p.WaitFor("I stay")
	p.Signal(syscall.SIGINT)
	assert.Equal(t, 130, p.Wait())
	assert.Equal(t, "sshrun: stopped by signal: interrupt; signal KILL ended the script\n", p.Stderr())
	assert.Empty(t, clitest.InGroup(t, clitest.Number(t, p.Stdout(), "pid")), "left behind")
}
