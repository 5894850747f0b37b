package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/examples/internal/clitest"
)

// TestScripts runs the program as its users do. Each script has a test site of
// its own at $SITE and a port at $NOBODY where nobody listens.
func TestScripts(t *testing.T) {
	clitest.Scripts(t, testscript.Params{
		Setup: func(env *testscript.Env) error {
			s := scriptSite()
			env.Values[siteKey] = s
			env.Values[childKey] = new(*exec.Cmd)
			var closers closers
			env.Setenv("SITE", s.listen(&closers))
			env.Defer(closers.close)
			env.Setenv("NOBODY", addressOfNobody())
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"asked":  cmdAsked,
			"signal": cmdSignal,
			"status": cmdStatus,
			"agrees": cmdAgrees,
			"report": cmdReport,
		},
	})
}

// closers lets a script stand in for a testing.T.
type closers []func()

func (c *closers) Cleanup(f func()) { *c = append(*c, f) }

func (c *closers) close() {
	for _, f := range *c {
		f()
	}
}

// addressOfNobody returns an address where somebody listened until just now.
func addressOfNobody() string {
	var c closers
	defer c.close()
	return newTestSite().listen(&c)
}

type key int

const (
	siteKey key = iota
	childKey
)

// scriptSite is everything, and some pages that hang.
func scriptSite() *testSite {
	s := everything()
	s.page("/hanging", `<a href="/a"> <a href="/hang"> <a href="/picture.png">`)
	s.hang("/hang")
	return s
}

// asked PATH: waits until the site is asked for PATH.
func cmdAsked(ts *testscript.TestScript, neg bool, args []string) {
	<-ts.Value(siteKey).(*testSite).wasAsked(args[0])
}

// signal INT|TERM: sends a signal to the one program in the background.
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	child := ts.BackgroundCmds()[0]
	ts.Check(child.Process.Signal(map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM}[args[0]]))
	*ts.Value(childKey).(**exec.Cmd) = child
}

// status N: the program that was signalled, and waited for, has exited with N.
func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	child := *ts.Value(childKey).(**exec.Cmd)
	if got := strconv.Itoa(child.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("want exit status %s, got %s", args[0], got)
	}
}

// agrees: the JSON report on stdout agrees with what the site has counted.
func cmdAgrees(ts *testscript.TestScript, neg bool, _ []string) {
	agrees(scriptT{ts}, ts.Value(siteKey).(*testSite), readReport(ts))
}

// report FIELD=VALUE...: the JSON report on stdout holds these values. A value
// may be a lower bound: FIELD>VALUE.
func cmdReport(ts *testscript.TestScript, neg bool, args []string) {
	var fields map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &fields))
	for _, arg := range args {
		field, bound, ok := strings.Cut(arg, ">")
		if ok {
			least, err := strconv.ParseFloat(bound, 64)
			ts.Check(err)
			if got, ok := fields[field].(float64); !ok || got <= least {
				ts.Fatalf("want %s, got %v", arg, fields[field])
			}
			continue
		}
		field, want, _ := strings.Cut(arg, "=")
		if got := fmt.Sprint(fields[field]); got != want {
			ts.Fatalf("want %s, got %s", arg, got)
		}
	}
}

func readReport(ts *testscript.TestScript) *report {
	rep := new(report)
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), rep))
	return rep
}

type scriptT struct{ ts *testscript.TestScript }

func (t scriptT) Errorf(format string, args ...any) { t.ts.Fatalf(format, args...) }

// The first signal asks for a report; if that gets stuck, on a reader that does
// not read, say, the second one ends the process.
func TestSecondSignalEndsTheProcessAtOnce(t *testing.T) {
	s := newTestSite()
	var links strings.Builder
	for i := range 500 { // a report that no pipe can hold
		fmt.Fprintf(&links, `<a href="/missing/%d/%s">`, i, strings.Repeat("x", 500))
	}
	s.page("/", links.String()+`<a href="/hang">`)
	s.hang("/hang")

	cmd := exec.Command("crawler", "-url", s.listen(t), "-delay", "0", "-page-timeout", "0", "-json")
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	defer stdout.Close()
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())

	<-s.wasAsked("/hang")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.Contains(lines.Text(), "stopped by signal") {
			break
		}
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	assert.Equal(t, "signal: interrupt", exit.String())
}
