// Package cli is the frame that the example programs share: flags with a usage
// text, errors with exit statuses, and signals as causes.
//
//	func main() { program.Main() }
//
//	var program = cli.Program{
//		Name:     "sleeper",
//		Synopsis: "[flags] seconds",
//		About:    "Sleeper sleeps.",
//		Exit:     "0 slept, 1 could not, 2 wrong arguments, 130 interrupted",
//		Flags:    func(flags *flag.FlagSet) { flags.BoolVar(&loud, "loud", false, "snore") },
//		Run:      run,
//	}
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// The exit statuses that timeout(1) and the shells have made customary. What a
// signal has ended exits with 128 and the number of the signal.
const (
	StatusDone     = 0
	StatusFailed   = 1
	StatusUsage    = 2
	StatusDeadline = 124
)

// A Program is a command with flags.
type Program struct {
	Name     string              // as it is called
	Synopsis string              // what may follow the name: "[flags] file"
	About    string              // what it does, in lines of at most 80
	Exit     string              // what its exit statuses mean
	Flags    func(*flag.FlagSet) // defines the flags, anew whenever it is called; may be nil

	// Run does the work, with the arguments that follow the flags. Its error
	// is printed, and decides the exit status: see Status.
	Run func(ctx context.Context, args []string, std Streams) error
}

// Streams are what a program reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs the program with the arguments and streams of the process, and ends
// the process with its exit status.
func (p *Program) Main() {
	os.Exit(p.Execute(context.Background(), os.Args[1:], Streams{os.Stdin, os.Stdout, os.Stderr}))
}

// Execute runs the program and returns its exit status. It prints the usage text
// to std.Out when asked for it with -h, and an error to std.Err.
func (p *Program) Execute(ctx context.Context, args []string, std Streams) int {
	flags := p.flagSet()
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		if _, err := io.WriteString(std.Out, p.Usage()); err != nil {
			fmt.Fprintf(std.Err, "%s: cannot write: %v\n", p.Name, err)
			return StatusFailed
		}
		return StatusDone
	}
	if err != nil {
		err = &UsageError{err.Error()}
	} else {
		err = p.Run(ctx, flags.Args(), std)
	}
	if err != nil && !quiet(err) {
		fmt.Fprintf(std.Err, "%s: %v\n", p.Name, err)
	}
	if errors.As(err, new(*UsageError)) {
		fmt.Fprintf(std.Err, "Run '%s -h' for the flags.\n", p.Name)
	}
	return Status(err)
}

// quiet reports whether the program has said already all that err holds. One
// that it has not is enough to have the whole printed.
func quiet(err error) bool {
	switch err := err.(type) {
	case interface{ Quiet() bool }:
		return err.Quiet()
	case interface{ Unwrap() error }:
		return quiet(err.Unwrap())
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(err.Unwrap(), func(err error) bool { return !quiet(err) })
	}
	return false
}

// Usage returns the text of -h. The flags say their own defaults: they are
// defined anew for it, and hold these then.
func (p *Program) Usage() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n\t%s %s\n", strings.TrimSpace(p.About), p.Name, p.Synopsis)
	if p.Flags != nil {
		b.WriteString("\nFlags:\n\n")
		flags := p.flagSet()
		flags.SetOutput(&b)
		flags.PrintDefaults()
	}
	fmt.Fprintf(&b, "\nExit status: %s.\n", strings.TrimSuffix(strings.TrimSpace(p.Exit), "."))
	return b.String()
}

func (p *Program) flagSet() *flag.FlagSet {
	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	if p.Flags != nil {
		p.Flags(flags)
	}
	return flags
}

// Status returns the exit status for what a Run has returned: that of the first
// error in its tree with a method ExitStatus() int, StatusFailed for any other
// error, StatusDone for nil.
func Status(err error) int {
	var own interface{ ExitStatus() int }
	switch {
	case err == nil:
		return StatusDone
	case errors.As(err, &own):
		return own.ExitStatus()
	}
	return StatusFailed
}

// A UsageError is about the arguments of a program. Its exit status is
// StatusUsage.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// ExitStatus returns StatusUsage.
func (e *UsageError) ExitStatus() int { return StatusUsage }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// An ExitError gives an error an exit status of its own. Without Err nothing is
// printed: the program has said already what there is to say.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// ExitStatus returns Code.
func (e *ExitError) ExitStatus() int { return e.Code }

// Quiet reports whether there is nothing to print.
func (e *ExitError) Quiet() bool { return e.Err == nil }

// Out is where a program prints what it has found. It keeps its first error, so
// that it need be looked at only once, at the end.
type Out struct {
	W   io.Writer
	err error
}

// Printf prints.
func (o *Out) Printf(format string, args ...any) { _, _ = fmt.Fprintf(o, format, args...) }

// Write is Printf for those who need an io.Writer.
func (o *Out) Write(p []byte) (int, error) {
	n, err := o.W.Write(p)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("cannot write: %w", err)
	}
	return n, err
}

// Err returns the first error of a Printf or Write.
func (o *Out) Err() error { return o.err }
