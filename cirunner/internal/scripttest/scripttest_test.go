//go:build unix

package scripttest

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) { Main(m, map[string]func(){"exiter": exiter}) }

// exiter ends with the status that its argument says.
func exiter() {
	var status int
	_, _ = fmt.Sscan(os.Args[1], &status)
	fmt.Println("out")
	fmt.Fprintln(os.Stderr, "err")
	os.Exit(status)
}

func TestScripts(t *testing.T) {
	Scripts(t, testscript.Params{
		Setup: func(env *testscript.Env) error { env.Setenv("ADDED", "more"); return nil },
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"mine": func(ts *testscript.TestScript, _ bool, args []string) { ts.Setenv("MINE", args[0]) },
		},
	})
}

// The scripts of this one must all fail.
func TestToFail(t *testing.T) {
	if os.Getenv("FAILING") != "" {
		Scripts(t, testscript.Params{Dir: "testdata/failing"})
	}
}

func TestScriptThatExitsOtherwiseFails(t *testing.T) {
	p := clitest.Start(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Environ(), "FAILING=1") }, os.Args[0], "-test.run=^TestToFail$", "-test.v")
	assert.Equal(t, 1, p.Wait())
	for _, want := range []string{
		"want exit status 0, got exit status 3",
		"want exit status 3, got exit status 4",
		"want exit status 3, got <nil>",
		"want exit status 1, got exec: \"no-such-program\"",
		"usage: exits status program",
	} {
		assert.Contains(t, p.Stdout(), want)
	}
	assert.NotContains(t, p.Stdout(), "--- PASS: TestToFail/")
}
