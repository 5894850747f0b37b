package clitest

import (
	"fmt"
	"os"
	"os/signal"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// LeakChecked returns m with a Run that fails if goroutines are left: for TestMain, and for what runs it.
//
//	func TestMain(m *testing.M) { os.Exit(clitest.LeakChecked(m).Run()) }
//
// # Details
//
// Programs that the tests start do not wait for a second when they end, as the race detector has it; a GORACE
// of the environment goes before that. Goroutines that are about to end have ten seconds to do so.
func LeakChecked(m *testing.M) interface{ Run() int } { return leakChecked{m} }

type leakChecked struct{ *testing.M }

// Run runs the tests and then looks for goroutines that are left.
func (m leakChecked) Run() int {
	watchSignals()
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", raceOptions)
	}
	status := m.M.Run()
	if status != 0 {
		return status // perhaps that is why goroutines are left
	}
	if err := left(); err != nil {
		fmt.Fprintln(os.Stderr, "left behind:", err)
		return 1
	}
	return 0
}

// left returns an error that shows the goroutines that are left. One that is about to end, as that of a connection
// whose other end has gone, may not have had its turn on a machine that is busy.
func left() (err error) {
	for end := time.Now().Add(turn); ; {
		if err = goleak.Find(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// turn is how long it may take until a goroutine that is about to end has had its turn.
const turn = 10 * time.Second

// raceOptions are for GORACE. A program under the race detector would wait for a
// second when it exits, in case a report is being written.
const raceOptions = "atexit_sleep_ms=20"

// watchSignals has package signal start its goroutine, which stays for good, so
// that it is not born in the synctest bubble of a test, which would never end.
func watchSignals() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
}
