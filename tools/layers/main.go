// Layers measures how the files of a package and of its internal packages hang
// together: which refer to which, in which layers they stand, how large they
// are.
//
// Layers prints the figures. With -check, those of the structure are compared
// with a file of limits, and the exit status is 1 when a limit is exceeded.
// Limits may only fall: -w writes the lower ones into the file, and only with
// -raise are higher ones written, too.
//
// With -scenes, layers also builds a program with coverage, runs the program,
// and prints how many functions and files each scene executes. The program is
// given the name of a folder, in which it leaves its counters as scene/round.
// Two scenes begin to count at the return statement of a task, and end with the
// return of its scope: in the scene failure the task fails, and success is for
// comparison.
//
//	layers [-dir folder] [-layers file] [-scenes folder] [-check file [-w [-raise]]] [-v | -json]
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// settings are what the flags say.
type settings struct {
	dir, layers, limits, scenes string
	write, raise, verbose, json bool
}

// errLimit says that a limit is exceeded, which was told already.
var errLimit = errors.New("a limit of the structure is exceeded")

// run is the program: it returns its exit status, which is 0 when all limits
// hold or were written, 1 when one is exceeded, and 2 when it could not be told.
func run(args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	err = s.run(stdout)
	switch {
	case errors.Is(err, errLimit):
		fmt.Fprintln(stderr, err)
		return 1
	case err != nil:
		fmt.Fprintln(stderr, "layers:", err)
		return 2
	}
	return 0
}

// parse reads the flags, and tells w what is wrong with them.
func parse(args []string, w io.Writer) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("layers", flag.ContinueOnError)
	flags.SetOutput(w)
	flags.StringVar(&s.dir, "dir", ".", "`folder` of the package")
	flags.StringVar(&s.layers, "layers", "", "`file` that says which file stands in which layer")
	flags.StringVar(&s.limits, "check", "", "`file` of the limits to hold")
	flags.StringVar(&s.scenes, "scenes", "", "`folder` of a program to play: count what its scenes execute")
	flags.BoolVar(&s.write, "w", false, "write limits that have become lower")
	flags.BoolVar(&s.raise, "raise", false, "with -w: write higher limits, too")
	flags.BoolVar(&s.verbose, "v", false, "list what is counted: references that run up, pairs, knots, what is long")
	flags.BoolVar(&s.json, "json", false, "print JSON, with all lists")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fmt.Fprintln(w, "layers:", err)
		return nil, err
	}
	return s, nil
}

// run measures, prints, and looks after the limits.
func (s *settings) run(w io.Writer) error {
	h, err := loadHouse(s.dir)
	if err != nil {
		return err
	}
	var p *plan
	if s.layers != "" {
		if p, err = readPlan(s.layers); err != nil {
			return err
		}
	}
	f, err := measure(h, p)
	if err != nil {
		return err
	}
	if s.scenes != "" {
		scenes, err := play(h, s.scenes)
		if err != nil {
			return err
		}
		f.countExecuted(h, scenes)
	}
	if err := s.print(w, f); err != nil {
		return err
	}
	if s.limits == "" {
		return nil
	}
	return s.check(w, structure(f))
}

func (s *settings) print(w io.Writer, f *figures) error {
	if s.json {
		e := json.NewEncoder(w)
		e.SetIndent("", "\t")
		return e.Encode(f)
	}
	f.print(w, s.verbose)
	return nil
}

// check compares current with the limits on record, and writes them if it may.
func (s *settings) check(w io.Writer, current []limit) error {
	recorded, err := readLimits(s.limits)
	if err != nil {
		return err
	}
	above, below := compare(current, recorded)
	if len(above) > 0 && !(s.write && s.raise) {
		return exceeded(above, s.limits)
	}
	if s.write && len(above)+len(below) > 0 {
		return writeLimits(s.limits, current)
	}
	if !s.json {
		for _, line := range below {
			fmt.Fprintln(w, "lower than its limit:", line)
		}
	}
	return nil
}
