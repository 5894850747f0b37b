package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ambit-go/ambit/examples/internal/scripttest"
)

func TestMain(m *testing.M) { scripttest.Main(m, map[string]func(){"server": main}) }

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) { scripttest.Scripts(t, testscript.Params{}) }
