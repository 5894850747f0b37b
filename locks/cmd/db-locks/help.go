package main

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/pflag"
)

// help says how the program, or one command of it, is used.
func help(w io.Writer, name string) error {
	c, known := commands[name]
	if name != "" && name != "help" && !known {
		return usagef("there is no command %q", name)
	}
	f := pflag.NewFlagSet("db-locks", pflag.ContinueOnError)
	f.SortFlags = false
	l := &line{lease: seconds(defaultLease)}
	if name != "" && name != "help" {
		text := fmt.Sprintf("db-locks %s: %s\n\nUsage: db-locks [OPTIONS] [rdb|ddb|redis|etcd] %s [FLAGS]\n", name, c.what, name)
		for _, add := range c.flags {
			add(l, f)
		}
		if c.flags != nil {
			text += "\nFlags:\n" + f.FlagUsages()
		}
		_, err := fmt.Fprint(w, text, "\ndb-locks -h lists the options that all commands have.\n")
		return err
	}
	text := "Mutexes and semaphores over databases\n\nUsage: db-locks [OPTIONS] [PROVIDER] COMMAND [FLAGS]\n\nCommands:\n"
	for _, name := range order {
		text += fmt.Sprintf("  %-22s %s\n", name, commands[name].what)
	}
	text += "  help                   say how a command is used\n"
	text += `
PROVIDER is the database:
  rdb    (the default) at $DATABASE_URL: sqlite:FILE, postgres://..., mysql://...; without it sqlite:db-locks.db
  redis  at $REDIS_URL
  etcd   at $ETCD_URL: etcd://HOST:PORT,HOST:PORT
  ddb    DynamoDB, with the settings of the AWS command line

Options:
`
	l.global(f, false)
	text += f.FlagUsages()
	text += `
Exit status: 0 done, 1 wrong usage, 2 not granted, 3 not the owner or in conflict, 4 not found, 5 the lock was lost,
6 the store cannot be reached. exec ends with the status of its command.
`
	_, err := fmt.Fprint(w, text)
	return err
}

// versionOf writes the version of the program.
func versionOf(w io.Writer) error {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	_, err := fmt.Fprintf(w, "db-locks %s\n", version)
	return err
}
