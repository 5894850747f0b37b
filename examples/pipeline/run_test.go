//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"pipeline": main})
}

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: clitest.Commands[*testscript.TestScript](), Setup: clitest.Setup[*testscript.Env]})
}

func TestGunzipGivesTheInputBack(t *testing.T) {
	for _, blocks := range []int{1, 4} {
		for _, size := range []int{0, 1, 9_999, 10_000, 10_001, 345_678} {
			data := make([]byte, size)
			for i := range data {
				data[i] = byte(rand.IntN(50))
			}
			p := clitest.Start(t, func(cmd *exec.Cmd) { cmd.Stdin = bytes.NewReader(data) },
				"pipeline", "-size", "10000", "-blocks", strconv.Itoa(blocks))
			require.Equal(t, 0, p.Wait(), p.Stderr())
			z, err := gzip.NewReader(bytes.NewReader([]byte(p.Stdout())))
			require.NoError(t, err)
			got, err := io.ReadAll(z)
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, got), "%d bytes", size)
			assert.Contains(t, p.Stderr(), "pipeline: "+strconv.Itoa(size)+" bytes read, ")
		}
	}
}

// Nothing comes in, and nobody takes what goes out: the system lets neither the
// read nor the write go, and the program ends all the same.
func TestASignalEndsAStreamThatIsStuck(t *testing.T) {
	clitest.Signals(t, func(t *testing.T, sig syscall.Signal, status int) {
		in, writer, err := os.Pipe()
		require.NoError(t, err)
		reader, out, err := os.Pipe()
		require.NoError(t, err)
		defer func() { _ = reader.Close() }()
		p := clitest.Start(t, func(cmd *exec.Cmd) { cmd.Stdin, cmd.Stdout = in, out }, "pipeline", "-size", "100000", "-blocks", "2")
		require.NoError(t, in.Close())
		require.NoError(t, out.Close())
		noise := make([]byte, 300_000)
		for i := range noise {
			noise[i] = byte(rand.Uint32())
		}
		written := make(chan struct{})
		go func() { defer close(written); _, _ = writer.Write(noise) }()
		_, err = io.ReadFull(reader, make([]byte, 10)) // the first block is being written
		require.NoError(t, err)
		p.Signal(sig)
		assert.Equal(t, status, p.Wait(), p.Stderr())
		assert.Regexp(t, `(?m)^pipeline: \d00000 bytes read, \d+ bytes written$`, p.Stderr())
		<-written
		_ = writer.Close()
	})
}
