//go:build unix

package main

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// untilSaid reads lines until one holds a text.
func untilSaid(t *testing.T, from *bufio.Scanner, text string) {
	t.Helper()
	for from.Scan() {
		if strings.Contains(from.Text(), text) {
			return
		}
	}
	require.Fail(t, "the program has ended without a word", text)
}

// started starts a command and returns its stdout and stderr.
func started(t *testing.T, cmd *exec.Cmd) (stdout, stderr io.ReadCloser) {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	stderr, err = cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return stdout, stderr
}

func TestATakeSaysThatTheStoreDoesNotAnswerAndThatItDoesAgain(t *testing.T) {
	s := newSession(t)
	s.ok("", "put", "a", "b")
	has := s.command("take", "--", "sh", "-c", "echo started; exec sleep 1000")
	out, _ := started(t, has)
	_, err := io.ReadFull(out, make([]byte, len("started\n")))
	require.NoError(t, err)

	take := s.command("take", "-ttl", "1s")
	out, errs := started(t, take)
	_, err = io.ReadFull(out, make([]byte, len("b\n")))
	require.NoError(t, err, "it reaches the process that has the file")
	require.NoError(t, has.Process.Signal(syscall.SIGSTOP))
	lines := bufio.NewScanner(errs)
	untilSaid(t, lines, "the store does not answer")
	require.NoError(t, has.Process.Signal(syscall.SIGCONT))
	untilSaid(t, lines, "the store answers again")
	require.NoError(t, take.Process.Signal(syscall.SIGTERM))
	_, _ = io.Copy(io.Discard, errs)
	_ = take.Wait()
	assert.Equal(t, 143, take.ProcessState.ExitCode())
}
