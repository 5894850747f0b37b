//go:build unix

package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// While the run is being stopped the tree says so, and what another Ctrl-C does. A failure is
// told with its last lines and in the table, and not above the tree besides.
func TestTheTreeWhileTheRunIsStopped(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
fails: {script: [exit 7]}
stubborn: {script: ["trap '' TERM; echo up; sleep 1000; sleep 1000"], cirunner: {grace: 1h}}
`)
	// Ctrl-C throws away what the terminal has not read yet, and puts an echo of its own there.
	cmd := exec.Command("bash", "-c", "stty noflsh -echo; exec cirunner -j 2 ci.yml")
	p.in(cmd)
	cmd.Env = append(cmd.Env, "TERM=xterm", "NO_COLOR=1")
	s := onTerminal(t, cmd, 80, 30)
	s.waitUntil(t, "both jobs", func(lines []string) bool {
		all := strings.Join(lines, "\n")
		return strings.Contains(all, "1 failed") && strings.Contains(all, "  up")
	})
	s.press(t, "\x03")
	s.waitUntil(t, "the stop", func(lines []string) bool {
		return strings.Contains(strings.Join(lines, "\n"), "\nstopping; Ctrl-C again aborts\n")
	})
	s.press(t, "\x03")
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	assert.Equal(t, 130, exit.ExitCode())
	s.waitFor(t, "cirunner: stopped by signal: interrupt")
	lines := strings.Join(s.shown.Lines(), "\n")
	assert.Equal(t, 2, strings.Count(lines, "exit status 7"), lines)
	assert.NotContains(t, lines, "stopping;")
	p.nothingIsLeft()
}
