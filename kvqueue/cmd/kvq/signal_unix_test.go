//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestASignalEndsTheCommandsAndTheirItemsGoBack(t *testing.T) {
	for signal, want := range map[os.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		s := newSession(t)
		s.ok("", "put", "a")
		cmd := s.command("take", "--", "sh", "-c", "echo started; exec sleep 1000")
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = io.ReadFull(out, make([]byte, len("started\n")))
		require.NoError(t, err)
		require.NoError(t, cmd.Process.Signal(signal))
		_ = cmd.Wait()
		assert.Equal(t, want, cmd.ProcessState.ExitCode())
		assert.NotContains(t, s.ok("", "peek"), "tries", "no attempt is spent")
		assert.Equal(t, "1\n", s.ok("", "len"))
	}
}

func TestASignalEndsAPutThatWaitsForLines(t *testing.T) {
	s := newSession(t)
	cmd := s.command("put")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.WriteString(in, "line\n")
	require.NoError(t, err)
	for out := ""; out != "1\n"; { // through the process that has the file, once it has
		_, out, _ = s.kvq("", "len")
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	assert.Equal(t, 143, cmd.ProcessState.ExitCode())
}

func TestAnItemOfAKilledProcessIsTakenByAnother(t *testing.T) {
	s := newSession(t)
	s.ok("", "put", "a")
	cmd := s.command("take", "-ttl", "1s", "--", "sh", "-c", "echo started; exec sleep 1000")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(out, make([]byte, len("started\n")))
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	var attempt int
	_, err = fmt.Sscanf(s.ok("", "take", "-once", "--", "sh", "-c", `echo "$KVQ_ITEM $KVQ_ATTEMPT"`), "a %d\n", &attempt)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, attempt, 2) // more if the process stood still for longer than its session lives, and took it again
}
