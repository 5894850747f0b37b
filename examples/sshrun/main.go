// Sshrun runs a script on another machine over ssh, as a step of a pipeline
// does, and tells how it ended there. It is stopped in stages: TERM, KILL, the end
// of the connection, each with its own time.
//
//	go run ./examples/sshrun -identity key ci@build.example.com build.sh
//	echo 'echo hello; exit 3' | go run ./examples/sshrun -identity key ci@build.example.com:2222 -
//
// main.go is the program, connect.go gets as far as a shell that waits for its script,
// run.go runs the script and stops it.
//
// It exits as the script does: with its status, or with 128 and the number of
// the signal that has ended it. When it has stopped the script it exits with 124
// at -timeout, with 128 and the number of the signal that it got itself, and with
// 141 if nobody reads its output any more; 255 if it could not run the script or
// does not know how it ended, 2 when the arguments are wrong. (go run hides the
// status: it prints it and exits with 1.)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

// A config is what the flags say.
type config struct {
	identity, knownHosts, shell, host, script string
	connect, timeout, term, kill, keepAlive   time.Duration
}

func main() {
	var cfg config
	flag.StringVar(&cfg.identity, "identity", "", "authenticate with the private key in this `file`")
	flag.StringVar(&cfg.knownHosts, "known-hosts", filepath.Join(os.Getenv("HOME"), ".ssh", "known_hosts"), "the `file` with the host keys to trust")
	flag.StringVar(&cfg.shell, "shell", "bash", "the `command` there that reads a script from its input")
	flag.DurationVar(&cfg.connect, "connect-timeout", 10*time.Second, "give up if the shell is not there after this `time`")
	flag.DurationVar(&cfg.timeout, "timeout", 0, "stop the script after this `time`; 0 for no limit")
	flag.DurationVar(&cfg.term, "term", 10*time.Second, "the `time` that a script has after TERM, before KILL")
	flag.DurationVar(&cfg.kill, "kill", 5*time.Second, "the `time` after KILL, before the connection is closed")
	flag.DurationVar(&cfg.keepAlive, "keepalive", 15*time.Second, "ask for a sign of life at this `interval`; stop if there is none for three")
	flag.Parse()
	err := cfg.read(flag.Args()) // a signal while it reads the script ends it as ever
	service.Main(func(ctx context.Context) error {
		if err != nil {
			return err
		}
		// A write that nobody reads is an error from here on: the script has to be told.
		signal.Notify(make(chan os.Signal, 1), syscall.Signal(pipeSignal))
		if err := cfg.run(ctx); err != nil {
			return &failure{err, status(err)}
		}
		return nil
	})
}

// A failure is an error with the exit status that it makes.
type failure struct {
	error
	status int
}

// ExitStatus is what package service asks for.
func (f *failure) ExitStatus() int { return f.status }

// read reads the script.
func (cfg *config) read(args []string) error {
	if len(args) != 2 {
		return &failure{errors.New("name a host and a script, like ci@build.example.com build.sh; - is stdin"), 2}
	}
	var text []byte
	var err error
	if cfg.host = args[0]; args[1] == "-" {
		text, err = io.ReadAll(os.Stdin)
	} else {
		text, err = os.ReadFile(args[1])
	}
	if err != nil {
		return &failure{fmt.Errorf("the script: %w", err), statusFailed}
	}
	cfg.script = string(text)
	return nil
}

// statusFailed says, as that of ssh(1), that the program, not the script, has failed.
// pipeSignal is SIGPIPE, for which not every system has a name.
const statusFailed, pipeSignal = 255, 13

// status returns the exit status for an error. Why the script was stopped counts for more
// than how it ended then; and for more than both, that nobody knows its end.
func status(err error) int {
	var end *ssh.ExitError
	var sig *service.SignalError
	switch {
	case errors.As(err, new(*lostError)):
		return statusFailed
	case errors.As(err, &sig):
		return sig.ExitStatus()
	case errors.As(err, new(*async.WatchdogError)): // whose check has a limit, too
		return statusFailed
	case errors.As(err, new(*async.TimeoutError)):
		return 124
	case errors.Is(err, syscall.EPIPE):
		return 128 + pipeSignal
	case errors.As(err, &end) && !errors.Is(err, errOutput):
		return end.ExitStatus()
	}
	return statusFailed
}
