//go:build unix

package main

import (
	"bufio"
	"database/sql"
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

// Another writes to the file, and stands still within that.
func TestATakeSaysThatTheStoreDoesNotAnswerAndThatItDoesAgain(t *testing.T) {
	s := newSession(t)
	s.ok("", "put", "b")
	take := s.command("take", "-ttl", "1s")
	out, errs := started(t, take)
	_, err := io.ReadFull(out, make([]byte, len("b\n")))
	require.NoError(t, err)
	db, err := sql.Open("sqlite", strings.TrimPrefix(s.store, "sqlite:")+"?_txlock=immediate&_pragma=busy_timeout(60000)")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	tx, err := db.Begin()
	require.NoError(t, err)
	lines := bufio.NewScanner(errs)
	untilSaid(t, lines, "is locked by another process")
	require.NoError(t, tx.Rollback())
	untilSaid(t, lines, "the store answers again")
	require.NoError(t, take.Process.Signal(syscall.SIGTERM))
	_, _ = io.Copy(io.Discard, errs)
	_ = take.Wait()
	assert.Equal(t, 143, take.ProcessState.ExitCode())
}
