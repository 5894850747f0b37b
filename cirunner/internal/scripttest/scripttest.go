// Package scripttest runs programs by scripts. The programs are the test binary itself,
// under another name.
package scripttest

import (
	"maps"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ambit-go/ambit/clitest"
)

// Main is for TestMain: it puts the programs into PATH, runs the tests, and
// fails if goroutines are left. It does not return.
//
//	func TestMain(m *testing.M) { scripttest.Main(m, map[string]func(){"actor": main}) }
//
// after is called when the tests have run.
func Main(m *testing.M, programs map[string]func(), after ...func()) {
	testscript.Main(followed{clitest.LeakChecked(m), after}, programs)
}

// followed runs tests, and then functions.
type followed struct {
	tests interface{ Run() int }
	after []func()
}

// Run returns the status of the tests.
func (f followed) Run() int {
	status := f.tests.Run()
	for _, after := range f.after {
		after()
	}
	return status
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
	cmds := clitest.Commands[*testscript.TestScript]()
	maps.Copy(cmds, p.Cmds)
	p.Cmds = cmds
	setup := p.Setup
	p.Setup = func(env *testscript.Env) error {
		if err := clitest.Setup(env); err != nil || setup == nil {
			return err
		}
		return setup(env)
	}
	p.RequireUniqueNames = true
	testscript.Run(t, p)
}
