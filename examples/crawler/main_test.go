package main

import (
	"testing"

	"github.com/ambit-go/ambit/examples/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, map[string]func(){"crawler": main}) }
