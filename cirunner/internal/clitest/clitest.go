// Package clitest runs the example programs as their users do: as processes,
// with scripts, with signals. The programs are the test binary itself, under
// another name.
package clitest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// Main is for TestMain: it puts the programs into PATH, runs the tests, and
// fails if goroutines are left. It does not return.
//
// Programs that are started with Start or by a script are no slower to end
// under the race detector than they have to be: see raceOptions.
//
//	func TestMain(m *testing.M) { clitest.Main(m, map[string]func(){"actor": main}) }
func Main(m *testing.M, programs map[string]func()) {
	testscript.Main(leakChecked{m}, programs)
}

// leakChecked runs the tests and then looks for goroutines that are left.
type leakChecked struct{ *testing.M }

func (m leakChecked) Run() int {
	watchSignals()
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", raceOptions)
	}
	status := m.M.Run()
	if err := Leaks(); status == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "left behind:", err)
		return 1
	}
	return status
}

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

// Leaks returns an error that lists the goroutines that are left, if there are
// any. It gives them a moment to end, and ignores those of the runtime and of
// package signal.
func Leaks() error { return goleak.Find() }

// Scripts runs the scripts in testdata/script. Beside the commands of
// testscript they have
//
//	exits STATUS PROGRAM [ARG...]	runs the program, which must exit with STATUS
//
// p may add to that; its Dir need not be set.
func Scripts(t *testing.T, p testscript.Params) {
	if p.Dir == "" {
		p.Dir = "testdata/script"
	}
	cmds := map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits}
	for name, f := range p.Cmds {
		cmds[name] = f
	}
	p.Cmds = cmds
	setup := p.Setup
	p.Setup = func(env *testscript.Env) error {
		env.Setenv("GORACE", os.Getenv("GORACE"))
		if setup == nil {
			return nil
		}
		return setup(env)
	}
	p.RequireUniqueNames = true
	testscript.Run(t, p)
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits status program [args...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case err == nil && args[0] == "0":
	case errors.As(err, &exit) && strconv.Itoa(exit.ExitCode()) == args[0]:
	default:
		ts.Fatalf("want exit status %s, got %v", args[0], err)
	}
}
