package main

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/examples/internal/scripttest"
)

func TestMain(m *testing.M) { scripttest.Main(m, map[string]func(){"traced": main}) }

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) { scripttest.Scripts(t, testscript.Params{}) }

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
