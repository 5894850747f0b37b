//go:build unix

// Attach attaches the terminal, or a pipe, to a container that runs, as docker attach does: stdin goes in, what the
// container prints comes out, and the exit status is that of the container.
//
//	go run ./examples/attach -host tcp://127.0.0.1:2375 my-container
//	echo 'make test' | go run ./examples/attach build
//
// attach.go has the race of stdin against stdout and the stages of a stop, engine.go the API of the engine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/service"
)

const about = `usage: attach [flags] container

Attach copies stdin to a container and its output here until the container ends. The first SIGINT or SIGTERM sends
it TERM, and KILL after the grace; the second one ends the grace.

Exit status: that of the container; 125 if it is not known, 2 wrong arguments, 130 and 143 stopped by a signal.

`

func main() {
	a := &attachment{stdout: os.Stdout, stderr: os.Stderr}
	host := flag.String("host", "unix:///var/run/docker.sock", "the `address` of the engine, tcp:// or unix://")
	flag.DurationVar(&a.grace, "grace", 10*time.Second, "the `time` between TERM and KILL")
	flag.DurationVar(&a.kill, "kill", 5*time.Second, "the `time` after KILL before the connection is closed")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	engine, err := newEngine(*host)
	if err != nil || flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "attach: name one container, and an engine like tcp://127.0.0.1:2375")
		os.Exit(2)
	}
	a.engine, a.container = engine, flag.Arg(0)
	service.Main(func(ctx context.Context) error {
		stdin, restore, err := wakeable(os.Stdin)
		if err != nil {
			return err
		}
		defer restore()
		a.stdin = stdin
		return a.run(ctx)
	})
}

// wakeable returns a file that reads what f does, and whose Close wakes up who reads: the Read of a terminal or a pipe
// blocks for ever otherwise. The file is opened anew where the system can do so: a terminal is stdout as well, often, and
// a write there would fail that has to wait. restore makes f as it was, for those who share it.
func wakeable(f *os.File) (file *os.File, restore func(), err error) {
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() { // a regular file would begin anew, too
		name := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
		if file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0); err == nil {
			return file, func() { _ = file.Close() }, nil
		}
	}
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return nil, nil, err
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, nil, errors.Join(err, syscall.Close(fd))
	}
	file = os.NewFile(uintptr(fd), f.Name())
	return file, func() {
		_ = syscall.SetNonblock(int(f.Fd()), false)
		_ = file.Close()
	}, nil
}

// A statusError is an exit status of the container that is not 0.
type statusError struct{ status int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the container has exited with status %d", e.status)
}

// ExitStatus is what package service asks for.
func (e *statusError) ExitStatus() int { return e.status }

// A lostError says that nobody knows how the container has ended.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

// ExitStatus is what package service asks for.
func (e *lostError) ExitStatus() int { return 125 }
