//go:build unix

package main

import (
	"testing"

	"github.com/ambit-go/ambit/examples/internal/clitest"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) { clitest.Main(m, map[string]func(){"tailresume": main}) }

func TestScripts(t *testing.T) { clitest.Scripts(t, testscript.Params{}) }
