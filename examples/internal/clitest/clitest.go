// Package clitest runs the example programs as their users do: as processes,
// with scripts, with signals. The programs are the test binary itself, under
// another name.
package clitest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// Main is for TestMain: it puts the programs into PATH, runs the tests, and
// fails if goroutines are left.
//
//	func TestMain(m *testing.M) { clitest.Main(m, map[string]func(){"actor": main}) }
func Main(m *testing.M, programs map[string]func()) {
	testscript.Main(leakChecked{m}, programs)
}

// leakChecked runs the tests and then looks for goroutines that are left.
type leakChecked struct{ *testing.M }

func (m leakChecked) Run() int {
	status := m.M.Run()
	if err := Leaks(); status == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "left behind:", err)
		return 1
	}
	return status
}

// Leaks returns an error that lists the goroutines that are left, if there are
// any. It ignores the one that the first signal.Notify of a process starts, and
// that stays for good.
func Leaks() error {
	return goleak.Find(goleak.IgnoreTopFunction("os/signal.signal_recv"))
}

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
