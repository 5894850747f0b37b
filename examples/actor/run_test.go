package main

import (
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/examples/internal/scripttest"
	"github.com/ambit-go/ambit/internal/clitest"
)

func TestMain(m *testing.M) { scripttest.Main(m, map[string]func(){"actor": main}) }

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) { scripttest.Scripts(t, testscript.Params{}) }

// The program has said what it is going to do, and would be at it for days.
func TestSignalEndsTheProgram(t *testing.T) {
	clitest.Signals(t, func(t *testing.T, sig syscall.Signal, status int) {
		p := clitest.Start(t, nil, "actor", "-transfers", "1000000000000")
		p.WaitFor("refused")
		p.Signal(sig)
		assert.Equal(t, status, p.Wait())
		assert.Equal(t, "actor: stopped by signal: "+sig.String()+"\n", p.Stderr())
	})
}
