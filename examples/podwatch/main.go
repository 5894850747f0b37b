//go:build unix

// Podwatch runs a command as long as a pod is well: a command in the pod, as kubectl exec does, would else wait for
// ever for a pod that was evicted, deleted, or started anew.
//
//	go run ./examples/podwatch -pod http://127.0.0.1:8001/api/v1/namespaces/ci/pods/job-1 -- kubectl exec -n ci job-1 -- make test
//
// watch.go is the watchdog.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/proc"
	"github.com/ambit-go/ambit/service"
)

const about = `usage: podwatch -pod url [flags] -- command...

Podwatch runs a command, and ends it when the pod is no longer the one that it was, or does not run any more.

Exit status: that of the command; 3 if the pod was lost, 2 wrong arguments, 130 and 143 stopped by a signal.

`

func main() {
	w := &watchdog{client: &http.Client{Timeout: 10 * time.Second}}
	flag.StringVar(&w.url, "pod", "", "the `url` of the pod, as kubectl proxy has it")
	flag.IntVar(&w.tolerate, "tolerate", 3, "let `n` looks in a row pass that the server does not answer")
	every := flag.Duration("every", 5*time.Second, "the `time` between two looks")
	grace := flag.Duration("grace", 10*time.Second, "the `time` between TERM and KILL")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	if w.url == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "podwatch: name a pod, and a command behind --")
		os.Exit(2)
	}
	command := proc.Command{Args: flag.Args(), Stdout: os.Stdout, Stderr: os.Stderr, Grace: *grace}
	service.Main(func(ctx context.Context) error {
		command.Hurry = service.Hurry(ctx)
		return run(ctx, command, w, *every)
	})
}

// run runs the command under the watchdog.
func run(ctx context.Context, command proc.Command, w *watchdog, every time.Duration) error {
	if err := w.look(ctx); err != nil { // before it starts: which pod is it?
		return &failure{err, lost}
	}
	result, err := async.Watch(ctx, func(ctx context.Context) (proc.Result, error) {
		return proc.Run(ctx, command)
	}, async.Every(every), w.look, async.Name("command")).Join(ctx)
	var sig *service.SignalError
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*async.WatchdogError)):
		return &failure{err, lost}
	case errors.As(err, &sig):
		return err
	}
	return &failure{err, max(1, result.Status())}
}

// lost is the exit status when the pod was lost.
const lost = 3

// A failure is an error with the exit status that it makes.
type failure struct {
	error
	status int
}

// ExitStatus is what package service asks for.
func (f *failure) ExitStatus() int { return f.status }

func (f *failure) Unwrap() error { return f.error }
