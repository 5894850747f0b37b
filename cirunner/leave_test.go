//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A run that lasts while others begin and end does not remove its own logs, and nobody may before its reports are written.
func TestALongRunKeepsItsLogsForItsReport(t *testing.T) {
	t.Parallel()
	p := newProject(t, "works: {script: ['echo the long one', 'until test -e $GO; do sleep 0.01; done', 'exit 3']}\n")
	ended := p.signalFile()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	long := p.start("-keep-runs", "1", "-report", "r.html", "-junit", pipe)
	long.WaitFor("[works] the long one")
	p.write("ci.yml", "works: {script: [echo short]}\n")
	assert.Equal(t, 0, p.start("-keep-runs", "1").Wait())
	require.NoError(t, os.WriteFile(ended, nil, 0o600))

	report, err := os.Open(pipe) // when the other end is open, too
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(p.dir, ".cirunner/1/lock"), "until its reports are there the run lasts")
	_, err = io.ReadAll(report)
	require.NoError(t, err)
	require.NoError(t, report.Close())
	assert.Equal(t, 1, long.Wait(), long.Stderr())
	assert.Contains(t, p.read("r.html"), "the long one")
	assert.Contains(t, p.read(".cirunner/1/logs/001-works.log"), "the long one")
	p.nothingIsLeft()
}

// Files of earlier runs that cannot be removed are told of, and change nothing of the status.
func TestEarlierRunsThatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	p := newProject(t, "works: {script: ['rm $LOCK', 'mkdir $LOCK']}\n")
	p.env = append(p.env, "LOCK="+filepath.Join(p.dir, ".cirunner/lock"))
	run := p.start()
	assert.Equal(t, 0, run.Wait(), run.Stderr())
	assert.Contains(t, run.Stdout(), "\n== cannot remove what earlier runs have left: ")
	p.nothingIsLeft()
}
