package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ambit-go/ambit/examples/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, map[string]func(){"thumbnails": main}) }

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) { clitest.Scripts(t, testscript.Params{}) }
