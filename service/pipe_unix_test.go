//go:build unix

package service_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// "server 2>&1 | tee log": an interrupt ends tee, too, and the server has still
// something to drain, and to say.
func TestABrokenStandardErrorDoesNotEndTheDrain(t *testing.T) {
	for _, name := range []string{"talks", "talks, alone"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startDeaf(t, name)
			p.signal(sigterm)
			assert.Equal(t, 0, p.wait())
			assert.Contains(t, p.stdout.String(), "drained: true\n")
		})
	}
}

func TestABrokenStandardErrorDoesNotEndServices(t *testing.T) {
	p := startDeaf(t, "talks")
	p.tell()
	assert.Equal(t, "written: true", p.waitFor("written"))
	p.signal(sigterm)
	assert.Equal(t, 0, p.wait())
}

// A filter ends with what reads it, as any program of Go.
func TestABrokenStandardErrorEndsAProgramWithoutServices(t *testing.T) {
	p := startDeaf(t, "talks, alone")
	p.tell()
	p.wait()
	status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	assert.Equal(t, syscall.SIGPIPE, status.Signal())
}

// startDeaf starts a program whose standard error nobody reads once it is ready.
func startDeaf(t *testing.T, name string) *process {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p := startOn(t, w, name)
	require.NoError(t, w.Close())
	p.waitFor("waiting")
	require.NoError(t, r.Close())
	return p
}
