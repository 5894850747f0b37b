// Waitpod waits until a pod runs, asking an HTTP API about its phase: it asks
// again when the server says, gives up at once when the answer is final, and
// when it gives up tells the phase that it has seen last.
//
//	go run ./examples/waitpod -demo
//	go run ./examples/waitpod -timeout 2m http://127.0.0.1:8001/api/v1/namespaces/default/pods/web
//	go run ./examples/waitpod -phase Succeeded http://127.0.0.1:8001/api/v1/namespaces/ci/pods/build-17
//
// The API is that of Kubernetes, as kubectl proxy serves it.
//
// It is meant to be copied: wait.go is the poll and its errors; api.go makes one
// request and tells a passing failure from a final one; internal/retryafter
// reads when the server wants to be asked again; demo.go is an API to try it
// with.
//
// It exits with 0 if the pod has come to the phase, 1 if it never will, 124 if it
// had not in time, 2 when the arguments are wrong, 130 when interrupted and 143
// when terminated. (go run hides the status: it prints it and exits with 1.)
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"net/url"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

func main() { program().Main() }

// A config is what the flags say.
type config struct {
	phase    string
	timeout  time.Duration // of the wait
	interval time.Duration // between requests, if the server does not say
	request  time.Duration // of one request
	verbose  bool
	demo     bool
}

func program() *cli.Program {
	var cfg config
	return &cli.Program{
		Name:     "waitpod",
		Synopsis: "[flags] URL",
		About: `Waitpod asks an HTTP API about a pod until that runs. It prints each phase on
stdout. The URL is that of the pod in the API of Kubernetes, which kubectl proxy
serves: http://127.0.0.1:8001/api/v1/namespaces/default/pods/NAME`,
		Exit: `0 the pod has come to the phase, 1 it never will or is not known, 124
it had not in time, 2 wrong arguments, 130 interrupted, 143 terminated`,
		Flags: cfg.define,
		Run: func(ctx context.Context, args []string, std cli.Streams) error {
			url, err := cfg.check(args)
			if err != nil {
				return err
			}
			return run(ctx, cfg, url, std)
		},
	}
}

func (cfg *config) define(flags *flag.FlagSet) {
	flags.StringVar(&cfg.phase, "phase", running, "wait for this `phase`: Running or Succeeded")
	flags.DurationVar(&cfg.timeout, "timeout", 5*time.Minute, "wait at most this `time`")
	flags.DurationVar(&cfg.interval, "interval", 3*time.Second, "ask again after this `time`, or when the server says")
	flags.DurationVar(&cfg.request, "request-timeout", 10*time.Second, "give up on a request after this `time`, and make another")
	flags.BoolVar(&cfg.verbose, "v", false, "tell on stderr what each request came to")
	flags.BoolVar(&cfg.demo, "demo", false, "ask a server of its own, which is busy at times")
}

// check looks at the flags, and reads the URL.
func (cfg *config) check(args []string) (pod string, err error) {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"timeout", cfg.timeout}, {"interval", cfg.interval}, {"request-timeout", cfg.request}} {
		if d.value <= 0 {
			return "", cli.Usagef("-%s must be more than 0", d.name)
		}
	}
	switch {
	case cfg.phase != running && cfg.phase != succeeded:
		return "", cli.Usagef("-phase must be %s or %s", running, succeeded)
	case cfg.demo && len(args) > 0:
		return "", cli.Usagef("-demo has a pod of its own; leave out %q", args[0])
	case cfg.demo:
		return "", nil
	case len(args) != 1:
		return "", cli.Usagef("give the URL of one pod, or try -demo")
	}
	u, err := url.Parse(args[0])
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", cli.Usagef("%q is not the URL of a pod, like http://127.0.0.1:8001/api/v1/namespaces/default/pods/web", args[0])
	}
	return args[0], nil
}

// run waits in a scope, and has the poll's error, which tells the last phase,
// rather than that of the scope.
func run(ctx context.Context, cfg config, pod string, std cli.Streams) error {
	client := newClient(http.DefaultTransport.(*http.Transport).Clone(), cfg.request)
	defer client.CloseIdleConnections()
	out := &cli.Out{W: std.Out}
	w := &waiter{client: client, phase: cfg.phase, interval: cfg.interval, timeout: cfg.timeout,
		changed: func(p status) { out.Printf("%v\n", p) },
		tell:    func(string, ...any) {},
	}
	if cfg.verbose {
		w.tell = log.New(std.Err, "waitpod: ", 0).Printf
	}
	var waited error
	err := async.Scope(ctx, func(ctx context.Context) (err error) {
		cli.FailOnSignal(ctx)
		if cfg.demo {
			if pod, err = serveDemo(ctx); err != nil {
				return err
			}
		}
		waited = w.wait(ctx, pod)
		return waited
	}, async.Name("waitpod"))
	if waited != nil {
		return waited
	}
	if err != nil {
		return err
	}
	return out.Err()
}
