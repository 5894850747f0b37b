package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// errUsage is what is wrong with a command line.
var errUsage = errors.New("db-locks -h says how it is used")

func usagef(format string, args ...any) error {
	return fmt.Errorf("%s; %w", fmt.Sprintf(format, args...), errUsage)
}

// A line is a command line, taken apart.
type line struct {
	provider string
	command  string
	args     []string // what is left, behind the flags
	flags    *pflag.FlagSet
	help     bool
	version  bool

	tenant, config, url string
	fair, json          choice

	key, semaphore, leaseVersion string
	lease                        seconds
	size                         int
	data                         string
	wait                         seconds
	noWait, force                bool
	processes, rounds            int
}

// A choice is a flag that takes true or false as its value, as in the original program.
type choice struct{ given, value bool }

func (c *choice) Set(s string) error {
	switch strings.ToLower(s) {
	case "true":
		c.value = true
	case "false":
		c.value = false
	default:
		return errors.New("it is true or false")
	}
	c.given = true
	return nil
}

func (c *choice) String() string { return fmt.Sprint(c.value) }
func (c *choice) Type() string   { return "true|false" }

// seconds is a length of time in whole seconds, as in the original program, or with a unit.
type seconds time.Duration

func (s *seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d < 0 {
		return errors.New("it is a number of seconds, such as 15, or a length of time such as 1m30s")
	}
	*s = seconds(d)
	return nil
}

func (s *seconds) String() string { return time.Duration(*s).String() }
func (s *seconds) Type() string   { return "seconds" }

// providers are the databases that the original program knows.
var providers = map[string]bool{"rdb": true, "ddb": true, "redis": true, "etcd": true}

// parse takes a command line apart. The order is OPTIONS, PROVIDER, COMMAND and its flags;
// options may stand anywhere.
func parse(args []string) (*line, error) {
	l := &line{lease: seconds(defaultLease), size: -1}
	l.provider, l.command, args = words(args)
	c, known := commands[l.command]
	l.flags = pflag.NewFlagSet("db-locks", pflag.ContinueOnError)
	l.flags.SortFlags = false
	l.flags.Usage = func() {}
	l.flags.SetInterspersed(!c.takes)
	if l.command != "" && !known {
		return nil, usagef("there is no command %q, and no provider: that is rdb, redis, etcd or ddb", l.command)
	}
	of := pflag.NewFlagSet("", pflag.ContinueOnError)
	of.SortFlags = false
	for _, add := range c.flags {
		add(l, of)
	}
	l.global(l.flags, of.Lookup("version") != nil)
	l.flags.AddFlagSet(of)
	if err := l.flags.Parse(args); err != nil {
		return nil, usagef("%v", err)
	}
	l.args = l.flags.Args()
	switch {
	case l.help || l.version:
		return l, nil
	case l.command == "help":
		l.help = true
		if len(l.args) > 0 {
			l.command = l.args[0]
		}
		return l, nil
	case l.command == "":
		return nil, usagef("a command is missing")
	case len(l.args) > 0 && !c.takes:
		return nil, usagef("%s takes no argument %q", l.command, l.args[0])
	}
	for _, name := range c.needs {
		if !l.flags.Changed(name) {
			return nil, usagef("%s needs --%s", l.command, name)
		}
	}
	return l, nil
}

// words takes the provider and the command out of a command line, and leaves the rest. An
// argument that belongs to an option before them is none of them.
func words(args []string) (provider, command string, rest []string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return provider, command, append(rest, args[i:]...)
		case strings.HasPrefix(a, "-"):
			rest = append(rest, a)
			if takesValue(a) && i+1 < len(args) {
				i++
				rest = append(rest, args[i])
			}
		case provider == "" && command == "" && providers[a]:
			provider = a
		case command == "":
			command = a
		default:
			return provider, command, append(rest, args[i:]...)
		}
		if command != "" {
			return provider, command, append(rest, args[i+1:]...)
		}
	}
	return provider, command, rest
}

// takesValue says whether an option that stands before the command takes the next argument.
func takesValue(option string) bool {
	switch option {
	case "-t", "-f", "-j", "-c", "--tenant", "--fair-semaphore", "--json-output", "--config", "--store":
		return true
	}
	return false
}

// global has the options that every command has. taken says that --version is something else
// for the command.
func (l *line) global(f *pflag.FlagSet, taken bool) {
	f.StringVarP(&l.tenant, "tenant", "t", "", "whose locks these are (default local-host-name)")
	f.VarP(&l.fair, "fair-semaphore", "f", "true: requests for a semaphore are granted in their order, and keys are those of semaphores")
	f.VarP(&l.json, "json-output", "j", "true: write JSON, and nothing else, to stdout")
	f.StringVarP(&l.config, "config", "c", "", "a `FILE` of settings in YAML")
	f.StringVar(&l.url, "store", "", "the `URL` of the store, in place of what the provider says: sqlite:FILE, redis://…, etcd://…, dynamodb:TABLE, postgres://…, mysql://…")
	f.BoolVarP(&l.help, "help", "h", false, "say how it is used")
	name := "version"
	if taken {
		name = "version-of-program"
	}
	f.BoolVarP(&l.version, name, "V", false, "say which version of the program this is")
}

// A flagOf adds one of the flags of a command.
type flagOf func(l *line, f *pflag.FlagSet)

func withKey(l *line, f *pflag.FlagSet) {
	f.StringVarP(&l.key, "key", "k", "", "the `key` of the lock")
}

func withLease(l *line, f *pflag.FlagSet) { f.VarP(&l.lease, "lease", "l", "how long the lease is") }

func withData(l *line, f *pflag.FlagSet) {
	f.StringVarP(&l.data, "data", "d", "", "text that is kept with the lock")
}

func withVersion(l *line, f *pflag.FlagSet) {
	f.StringVarP(&l.leaseVersion, "version", "v", "", "the `version` that acquire or the last heartbeat has told")
}

func withSemaphore(l *line, f *pflag.FlagSet) {
	f.StringVarP(&l.semaphore, "semaphore-key", "s", "", "the `key` of the semaphore, if it is one of its permits")
}

func withSize(name, short string) flagOf {
	return func(l *line, f *pflag.FlagSet) {
		f.IntVarP(&l.size, name, short, -1, "the `number` of permits of the semaphore, at most 1000")
		f.Lookup(name).DefValue = "0" // for people: there is none
	}
}

func withWait(l *line, f *pflag.FlagSet) {
	f.Var(&l.wait, "wait", "how long to wait for the lock (default the lease and 100 ms)")
	f.Lookup("wait").DefValue = "0" // for people: it is said
	f.BoolVar(&l.noWait, "no-wait", false, "do not wait")
}

func withForce(l *line, f *pflag.FlagSet) {
	f.BoolVar(&l.force, "force", false,
		"end them at once: for holders that are dead; two may believe to have the lock for up to a lease")
}

func withDemo(l *line, f *pflag.FlagSet) {
	f.IntVar(&l.processes, "processes", 20, "how many `processes`")
	f.IntVar(&l.rounds, "rounds", 15, "how many `times` each increments the counter")
}
