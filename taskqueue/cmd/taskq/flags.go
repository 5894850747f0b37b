package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"
)

// parse reads flags, which may stand before the arguments and behind them, and returns
// the arguments. A text behind -- is an argument, whatever it looks like.
func parse(f *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := f.Parse(args); err != nil {
			return nil, flagError(f, err)
		}
		left := f.Args()
		if ended := len(args) > len(left) && args[len(args)-len(left)-1] == "--"; ended || len(left) == 0 {
			return append(rest, left...), nil
		}
		rest, args = append(rest, left[0]), left[1:]
	}
}

// flagError says what is wrong with a flag, and what to do.
func flagError(f *flag.FlagSet, err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	hint := ""
	if strings.Contains(err.Error(), "parse error") {
		for _, name := range strings.Fields(err.Error()) {
			if d := f.Lookup(strings.Trim(name, "-:")); d != nil && strings.HasPrefix(name, "-") {
				if _, is := d.Value.(flag.Getter).Get().(interface{ Seconds() float64 }); is {
					hint = " (write a time as 90s, 10m or 1h30m)"
				}
			}
		}
	}
	return usagef("%v%s; see taskq %s -h", err, hint, f.Name())
}

// wrongArgs says that a command line has arguments that the command does not take.
func wrongArgs(name string, c command, args []string) error {
	switch {
	case c.args == "" && len(args) > 0:
		return usagef("%s takes no argument such as %q; a queue is named with -queue; see taskq %s -h", name, args[0], name)
	case strings.HasPrefix(c.args, "id") && len(args) == 0:
		return usagef("%s needs the id of a task, or several; taskq list shows them", name)
	}
	return nil
}

// usagef is a wrong command line.
func usagef(format string, args ...any) error { return &statusError{fmt.Errorf(format, args...), 2} }
