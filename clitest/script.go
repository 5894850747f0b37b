package clitest

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
)

// Script is what a *testscript.TestScript has, of github.com/rogpeppe/go-internal.
type Script interface {
	Exec(command string, args ...string) error
	Fatalf(format string, args ...any)
}

// Commands returns the commands that scripts of package testscript have for programs, beside those of testscript.
//
//	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: clitest.Commands[*testscript.TestScript]()})
//
// # Details
//
// There is one:
//
//	exits STATUS PROGRAM [ARG...]	runs the program, which must exit with STATUS
//
// More can be added to the map. The programs are those that testscript.Main was given.
func Commands[T Script]() map[string]func(ts T, neg bool, args []string) {
	return map[string]func(ts T, neg bool, args []string){"exits": exits[T]}
}

func exits[T Script](ts T, neg bool, args []string) {
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

// Setup is for the Setup of a script of package testscript, whose programs are then as quick to end as others.
//
//	testscript.Run(t, testscript.Params{Dir: "testdata/script", Setup: clitest.Setup[*testscript.Env]})
//
// # Details
//
// A script has an environment of its own; Setup adds the GORACE of [LeakChecked] to it.
func Setup[E interface{ Setenv(key, value string) }](env E) error {
	env.Setenv("GORACE", os.Getenv("GORACE"))
	return nil
}
