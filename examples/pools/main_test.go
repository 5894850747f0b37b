package main

import (
	"testing"

	"github.com/panjf2000/ants/v2"

	"github.com/ambit-go/ambit/examples/internal/scripttest"
)

func TestMain(m *testing.M) {
	ants.Release() // what importing ants has started
	scripttest.Main(m, map[string]func(){"pools": main})
}
