//go:build unix

package main

import (
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/clitest"
	"github.com/ambit-go/ambit/proc"
)

func TestTheDemonstrationKeepsToTheGraceThatIsAskedFor(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{proc.DefaultGrace: demoGrace, 30 * time.Second: 30 * time.Second} {
		c, err := (&config{demo: true, grace: asked}).command(nil, cli.Streams{})
		require.NoError(t, err)
		assert.Equal(t, want, c.Grace)
	}
}

// A shell that ssh starts has a socket as its input. The second script ends
// before its input does.
func TestAScriptFromASocketIsRun(t *testing.T) {
	for script, end := range map[string]bool{"echo one; cat; echo two; exit 3\n": true, "echo one; echo two; exit 3\n": false} {
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
		_, err = io.WriteString(ours, script)
		require.NoError(t, err)
		if end {
			require.NoError(t, ours.(*net.TCPConn).CloseWrite())
		}
		assert.Equal(t, 3, p.Wait(), p.Stderr())
		assert.Equal(t, "one\ntwo\n", p.Stdout())
		assert.Equal(t, "runstep: step: exit status 3\n", p.Stderr())
	}
}

func TestAScriptCannotBeADirectory(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	_, err = fromStdin(proc.Command{}, dir)
	assert.ErrorContains(t, err, "standard input is a directory")
}
