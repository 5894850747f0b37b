package main

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"traced": main})
}

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: clitest.Commands[*testscript.TestScript](), Setup: clitest.Setup[*testscript.Env]})
}

// Each order is one trace, with both runs of its receipt in it.
func TestEachOrderIsOneTrace(t *testing.T) {
	var out strings.Builder
	require.NoError(t, traced(asynctest.Context(t), 2, &out))
	require.Equal(t, strings.Repeat(oneTrace, 2), out.String())
}

const oneTrace = `POST /orders: ok
  charge: ok
  receipt #: error *errors.errorString, by the queue
    send mail: error *errors.errorString
  receipt #: ok, by the queue
    send mail: ok
`
