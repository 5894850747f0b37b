// Db-locks takes and gives back distributed locks from the command line. It has the
// commands, flags and JSON of the program of this name by Shahzad Bhatti (2022), and more.
//
//	db-locks acquire --key invoice/42
//	db-locks exec --key nightly -- ./backup.sh
//	db-locks -j true redis get-mutex -k invoice/42
//
// The exit status is 0 if it was done, 1 if the command line or the configuration is wrong,
// 2 if the lock was not granted, 3 if the version is not that of a holder, or something is
// in conflict, 4 if there is no such lock, 5 if the lock was lost, 6 if the store cannot be
// reached. exec ends with the status of its command.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/redis/go-redis/v9/logging"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/service"

	// The stores that it can open.
	_ "github.com/ambit-go/ambit/locks/dynamostore"
	_ "github.com/ambit-go/ambit/locks/etcdstore"
	_ "github.com/ambit-go/ambit/locks/memstore"
	_ "github.com/ambit-go/ambit/locks/mysqlstore"
	_ "github.com/ambit-go/ambit/locks/pgstore"
	_ "github.com/ambit-go/ambit/locks/redisstore"
	_ "github.com/ambit-go/ambit/locks/sqlitestore"
)

func main() {
	logging.Disable() // what the client of Redis has to say is in the errors
	if len(os.Args) > 1 && os.Args[1] == "demo-worker" {
		service.Main(func(ctx context.Context) error { return demoWorker(ctx, os.Args[2:]) })
	}
	service.Main(func(ctx context.Context) error {
		return run(ctx, &program{args: os.Args[1:], env: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr})
	})
}

// A program is what a command works with.
type program struct {
	args   []string
	env    func(string) string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	cfg   config
	store locks.Store
	m     *locks.Manager
}

// run carries out a command line.
func run(ctx context.Context, p *program) error {
	return withStatus(p.run(ctx))
}

func (p *program) run(ctx context.Context) error {
	line, err := parse(p.args)
	if err != nil {
		return err
	}
	if line.help {
		return help(p.stdout, line.command)
	}
	if line.version {
		return versionOf(p.stdout)
	}
	if p.cfg, err = configure(line, p.env); err != nil {
		return err
	}
	c := commands[line.command]
	if !c.alone {
		if err := p.open(ctx); err != nil {
			return err
		}
		defer func() { _ = p.store.Close() }()
	}
	return c.run(ctx, p, line)
}

// open opens the store and the manager.
func (p *program) open(ctx context.Context) (err error) {
	if p.store, err = locks.Open(ctx, p.cfg.url); err != nil {
		return err
	}
	p.m, err = locks.New(p.store, locks.Tenant(p.cfg.Tenant), locks.Lease(max(defaultLease, p.store.Traits().MinLease)))
	if err != nil {
		return errors.Join(err, p.store.Close())
	}
	return nil
}

// A statusError is an error with an exit status of its own.
type statusError struct {
	err    error
	status int
}

func (e *statusError) Error() string   { return e.err.Error() }
func (e *statusError) Unwrap() error   { return e.err }
func (e *statusError) ExitStatus() int { return e.status }

// withStatus gives an error the exit status that belongs to it.
func withStatus(err error) error {
	if err == nil {
		return nil
	}
	var has interface{ ExitStatus() int }
	if errors.As(err, &has) {
		return err
	}
	for _, s := range []struct {
		sort   error
		status int
	}{
		{errUsage, 1},
		{locks.ErrValidation, 1},
		{locks.ErrNotGranted, 2},
		{locks.ErrNotOwner, 3},
		{locks.ErrConflict, 3},
		{locks.ErrNotFound, 4},
	} {
		if errors.Is(err, s.sort) {
			return &statusError{err, s.status}
		}
	}
	var lost *locks.LostError
	if errors.As(err, &lost) {
		return &statusError{err, 5}
	}
	if errors.Is(err, locks.ErrUnavailable) || errors.Is(err, locks.ErrUnknownOutcome) {
		return &statusError{err, 6}
	}
	return err
}
