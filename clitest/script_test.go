//go:build unix

package clitest

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A script stands in for the TestScript of package testscript.
type script struct{ failed string }

func (s *script) Exec(command string, args ...string) error {
	return exec.Command(command, args...).Run()
}

func (s *script) Fatalf(format string, args ...any) {
	s.failed = fmt.Sprintf(format, args...)
	panic(s)
}

// run runs the command exits and returns what it failed with.
func (s *script) run(neg bool, args ...string) string {
	defer func() { _ = recover() }()
	Commands[*script]()["exits"](s, neg, args)
	return ""
}

func TestExitsLooksAtTheStatus(t *testing.T) {
	for _, test := range []struct {
		neg  bool
		args []string
		want string
	}{
		{false, []string{"0", "exiter", "0"}, ""},
		{false, []string{"3", "exiter", "3"}, ""},
		{false, []string{"0", "exiter", "3"}, "want exit status 0, got exit status 3"},
		{false, []string{"3", "exiter", "4"}, "want exit status 3, got exit status 4"},
		{false, []string{"3", "exiter", "0"}, "want exit status 3, got <nil>"},
		{false, []string{"1", "no-such-program"}, `want exit status 1, got exec: "no-such-program": executable file not found in $PATH`},
		{false, []string{"0"}, "usage: exits status program [args...]"},
		{true, []string{"0", "exiter", "0"}, "usage: exits status program [args...]"},
	} {
		s := new(script)
		s.run(test.neg, test.args...)
		assert.Equal(t, test.want, s.failed, test.args)
	}
}

type environment map[string]string

func (e environment) Setenv(key, value string) { e[key] = value }

func TestAScriptEndsAsQuicklyAsItMay(t *testing.T) {
	env := environment{}
	assert.NoError(t, Setup(env))
	assert.Equal(t, environment{"GORACE": os.Getenv("GORACE")}, env)
	assert.Contains(t, env["GORACE"], "atexit_sleep_ms")
}
