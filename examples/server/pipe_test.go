//go:build unix

package main

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The journal is the standard output, and what reads that has gone, as in "server |
// head": an order that was accepted is lost, and the program says so and ends with 1.
func TestAJournalThatNobodyReadsIsNoSilence(t *testing.T) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	r := startWith(t, func(cmd *exec.Cmd) { cmd.Stdout = writer }, "-journal", "", "-grace", "1h")
	require.NoError(t, writer.Close())
	require.NoError(t, reader.Close())
	_, status, err := r.order(strings.NewReader("lost"), nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusAccepted, status)
	assert.Equal(t, 1, r.Wait(), r.Stderr())
	assert.Contains(t, r.Stderr(), "1 accepted, 0 written")
	assert.Contains(t, r.Stderr(), "batch: 1 item lost: write /dev/stdout: broken pipe")
}
