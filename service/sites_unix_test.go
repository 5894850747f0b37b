//go:build unix

package service_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Its server ended with a failure after a stop that had gone well, and with 0 after
// a failure.
func TestWoodpeckerGaveTheWrongExitStatus(t *testing.T) {
	stopped := start(t, "clean")
	stopped.waitFor("ready")
	stopped.signal(sigterm)
	assert.Equal(t, 0, stopped.wait())
	assert.Equal(t, 1, start(t, "error").wait())
}

// It closed the channel that it was notified of signals with, at its end: the next signal
// panicked, and the one after the second was lost.
func TestBuildkiteClosedTheChannelOfItsSignals(t *testing.T) {
	p := start(t, "late")
	p.waitFor("waiting")
	p.signal(sigterm)
	p.waitFor("run returns")
	p.signal(syscall.SIGINT)
	assert.Equal(t, 143, p.wait())
	assert.NotContains(t, p.said(), "panic")
}
