package cli_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/cli"
)

// sleeper has two flags, and its Run is run.
func sleeper(run func(ctx context.Context, args []string, std cli.Streams) error) (p *cli.Program, loud *bool, naps *time.Duration) {
	loud, naps = new(bool), new(time.Duration)
	return &cli.Program{
		Name:     "sleeper",
		Synopsis: "[flags] bed",
		About:    "\nSleeper sleeps.\n",
		Exit:     "0 slept, 1 could not.",
		Flags: func(flags *flag.FlagSet) {
			flags.BoolVar(loud, "loud", false, "snore")
			flags.DurationVar(naps, "naps", time.Hour, "sleep for this `time`")
		},
		Run: run,
	}, loud, naps
}

// execute runs p with nothing on stdin.
func execute(p *cli.Program, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = p.Execute(context.Background(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return status, out.String(), errs.String()
}

func notRun(context.Context, []string, cli.Streams) error { panic("it is not to run") }

const usage = `Sleeper sleeps.

	sleeper [flags] bed

Flags:

  -loud
    	snore
  -naps time
    	sleep for this time (default 1h0m0s)

Exit status: 0 slept, 1 could not.
`

func TestHelpIsAllOfTheUsageOnStdout(t *testing.T) {
	for _, arg := range []string{"-h", "-help", "--help"} {
		p, _, _ := sleeper(notRun)
		status, stdout, stderr := execute(p, arg)
		assert.Equal(t, cli.StatusDone, status)
		assert.Equal(t, usage, stdout)
		assert.Empty(t, stderr)
	}
}

func TestUsageOfAProgramWithoutFlags(t *testing.T) {
	p := &cli.Program{Name: "plain", Synopsis: "file", About: "Plain does.", Exit: "0 always"}
	assert.Equal(t, "Plain does.\n\n\tplain file\n\nExit status: 0 always.\n", p.Usage())
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestHelpThatCannotBeWrittenIsAFailure(t *testing.T) {
	p, _, _ := sleeper(notRun)
	var errs bytes.Buffer
	assert.Equal(t, cli.StatusFailed, p.Execute(t.Context(), []string{"-h"}, cli.Streams{Out: full{}, Err: &errs}))
	assert.Equal(t, "sleeper: cannot write: no space left on device\n", errs.String())
}

func TestWrongFlagsAreToldWithWhatToDo(t *testing.T) {
	for arg, want := range map[string]string{
		"-nope":     "flag provided but not defined: -nope",
		"-naps=few": `invalid value "few" for flag -naps: parse error`,
	} {
		p, _, _ := sleeper(notRun)
		status, stdout, stderr := execute(p, arg)
		assert.Equal(t, cli.StatusUsage, status)
		assert.Empty(t, stdout)
		assert.Equal(t, "sleeper: "+want+"\nRun 'sleeper -h' for the flags.\n", stderr)
	}
}

func TestRunGetsTheArgumentsTheStreamsAndTheContext(t *testing.T) {
	type key struct{}
	var naps *time.Duration
	var loud *bool
	var p *cli.Program
	p, loud, naps = sleeper(func(ctx context.Context, args []string, std cli.Streams) error {
		assert.Equal(t, "value", ctx.Value(key{}))
		assert.Equal(t, []string{"bed", "-loud=false"}, args)
		assert.True(t, *loud)
		assert.Equal(t, time.Minute, *naps)
		in, err := io.ReadAll(std.In)
		fmt.Fprintf(std.Out, "out %s", in)
		fmt.Fprint(std.Err, "err")
		return err
	})
	var out, errs bytes.Buffer
	ctx := context.WithValue(t.Context(), key{}, "value")
	status := p.Execute(ctx, []string{"-loud", "-naps", "1m", "bed", "-loud=false"}, cli.Streams{In: strings.NewReader("in"), Out: &out, Err: &errs})
	assert.Equal(t, cli.StatusDone, status)
	assert.Equal(t, "out in", out.String())
	assert.Equal(t, "err", errs.String())
}

func TestErrorOfRunIsPrintedAndDecidesTheStatus(t *testing.T) {
	plain := errors.New("no bed")
	for _, test := range []struct {
		name   string
		err    error
		status int
		stderr string
	}{
		{"nothing", nil, 0, ""},
		{"any error", plain, 1, "sleeper: no bed\n"},
		{"arguments", cli.Usagef("bed %d is taken", 4), 2, "sleeper: bed 4 is taken\nRun 'sleeper -h' for the flags.\n"},
		{"arguments, wrapped", fmt.Errorf("night: %w", cli.Usagef("no")), 2, "sleeper: night: no\nRun 'sleeper -h' for the flags.\n"},
		{"a status of its own", &cli.ExitError{Code: 7, Err: plain}, 7, "sleeper: no bed\n"},
		{"a status of its own, wrapped", fmt.Errorf("night: %w", &cli.ExitError{Code: 7, Err: plain}), 7, "sleeper: night: no bed\n"},
		{"nothing to print", &cli.ExitError{Code: 9}, 9, ""},
		{"nothing to print, wrapped", fmt.Errorf("night: %w", &cli.ExitError{Code: 9}), 9, ""},
		{"nothing to print, twice", errors.Join(&cli.ExitError{Code: 9}, &cli.ExitError{Code: 8}), 9, ""},
		{"nothing to print, and something", errors.Join(&cli.ExitError{Code: 9}, plain), 9, "sleeper: exit status 9\nno bed\n"},
		{"the first of a tree", errors.Join(plain, &cli.SignalError{Signal: syscall.SIGTERM}, &cli.ExitError{Code: 7}), 143,
			"sleeper: no bed\nstopped by signal: terminated\nexit status 7\n"},
		{"a signal", &cli.SignalError{Signal: syscall.SIGINT}, 130, "sleeper: stopped by signal: interrupt\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, _, _ := sleeper(func(context.Context, []string, cli.Streams) error { return test.err })
			status, stdout, stderr := execute(p)
			assert.Equal(t, test.status, status)
			assert.Equal(t, test.status, cli.Status(test.err))
			assert.Equal(t, test.stderr, stderr)
			assert.Empty(t, stdout)
		})
	}
}

// What comes out of a scope is a list when more than one thing went wrong.
func TestStatusIsFoundInTheErrorOfAScope(t *testing.T) {
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		async.OnExit(ctx, func(context.Context, error) error { return errors.New("and the hook") })
		return &cli.ExitError{Code: 7, Err: errors.New("the body")}
	})
	require.ErrorAs(t, err, new(*async.ScopeError))
	assert.Equal(t, 7, cli.Status(err))
}

func TestExitErrorLeadsToItsError(t *testing.T) {
	plain := errors.New("no bed")
	assert.ErrorIs(t, &cli.ExitError{Code: 7, Err: plain}, plain)
	assert.EqualError(t, &cli.ExitError{Code: 7}, "exit status 7")
}

// A fussy writer fails at its second write only.
type fussy struct {
	bytes.Buffer
	writes int
}

func (f *fussy) Write(p []byte) (int, error) {
	if f.writes++; f.writes == 2 {
		return 0, syscall.EPIPE
	}
	return f.Buffer.Write(p)
}

func TestOutKeepsItsFirstError(t *testing.T) {
	w := new(fussy)
	out := &cli.Out{W: w}
	out.Printf("one %d\n", 1)
	require.NoError(t, out.Err())
	out.Printf("two\n")
	out.Printf("three\n")
	assert.ErrorIs(t, out.Err(), syscall.EPIPE)
	assert.EqualError(t, out.Err(), "cannot write: broken pipe")
	out.W = full{}
	out.Printf("four\n")
	assert.ErrorIs(t, out.Err(), syscall.EPIPE, "the first")
}
