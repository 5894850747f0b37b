package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/panjf2000/ants/v2"
	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){"pools": main})
}

// leakChecked runs the tests and then looks for goroutines that are left.
type leakChecked struct{ *testing.M }

func (m leakChecked) Run() int {
	ants.Release() // what importing ants has started
	status := m.M.Run()
	if err := goleak.Find(ignoreSignals); status == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "left behind:", err)
		return 1
	}
	return status
}

// ignoreSignals ignores the goroutine that the first signal.Notify of a process
// starts, and that stays for good.
var ignoreSignals = goleak.IgnoreTopFunction("os/signal.signal_recv")

func TestLeakCheckSeesALeak(t *testing.T) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { defer close(stopped); <-stop }()
	if goleak.Find(ignoreSignals) == nil {
		t.Error("a goroutine that is left is not found")
	}
	close(stop)
	<-stopped
}
