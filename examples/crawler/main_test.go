package main

import (
	"fmt"
	"os"
	"os/signal"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The first Notify of a process starts a goroutine that stays for good. It
	// must not be born in a synctest bubble.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	testscript.Main(leakChecked{m}, map[string]func(){"crawler": main})
}

// leakChecked runs the tests and then looks for goroutines that are left.
type leakChecked struct{ *testing.M }

func (m leakChecked) Run() int {
	status := m.M.Run()
	if err := goleak.Find(); status == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "left behind:", err)
		return 1
	}
	return status
}

func TestLeakCheckSeesALeak(t *testing.T) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { defer close(stopped); <-stop }()
	if goleak.Find() == nil {
		t.Error("a goroutine that is left is not found")
	}
	close(stop)
	<-stopped
}
