//go:build unix

package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ambit-go/ambit/examples/internal/scripttest"
)

func TestMain(m *testing.M) { scripttest.Main(m, map[string]func(){"runstep": main}) }

func TestScripts(t *testing.T) { scripttest.Scripts(t, testscript.Params{}) }
