// Crawler walks over a web site breadth first and reports what it found: how
// many pages and bytes, how fast, which pages were slowest, which links are
// broken and where they stand.
//
// Without arguments it serves the source tree of the local Go installation over
// HTTP on the loopback interface and crawls that:
//
//	go run ./examples/crawler
//	go run ./examples/crawler -url https://example.com/ -depth 2
//
// It is meant to be copied. The scopes and futures are here and in crawl.go; the
// other files are what a crawler needs anyway: page.go fetches, links.go parses,
// site.go serves the built-in site, robots.go is polite, progress.go says how it
// goes, report.go sums up, table.go prints that, flags.go reads the arguments.
//
// It exits with 0 when the crawl is complete, 1 when it could not be made, 2
// when the arguments are wrong, 124 at the deadline and 130 when interrupted.
// The last two print what was found so far. (go run hides the status: it
// prints it and exits with 1.)
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
)

// The exit statuses that timeout(1) and the shells have made customary.
const (
	statusDone      = 0
	statusFailed    = 1
	statusUsage     = 2
	statusDeadline  = 124
	statusInterrupt = 130
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with everything it depends on as an argument.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parseFlags(args)
	switch {
	case errors.Is(err, errHelp):
		fmt.Fprint(stdout, usage())
		return statusDone
	case err != nil:
		fmt.Fprintf(stderr, "crawler: %v\nRun 'crawler -h' for the flags.\n", err)
		return statusUsage
	}
	rep, status := newCrawl(cfg, newProgress(stderr)).do(ctx)
	switch status {
	case statusFailed:
		fmt.Fprintf(stderr, "crawler: %s\n", rep.Stopped)
		return status
	case statusDeadline, statusInterrupt:
		fmt.Fprintf(stderr, "crawler: %s; this is what was found so far\n", rep.Stopped)
	}
	if err := rep.write(stdout, cfg.json); err != nil {
		fmt.Fprintf(stderr, "crawler: cannot write the report: %v\n", err)
		return statusFailed
	}
	return status
}

// do crawls the site. It returns what was found, all or in part, and the exit
// status.
//
// One scope holds whatever belongs to the crawl: the watch for signals, the
// built-in server, the requests. When do returns, all of it has ended.
func (c *crawl) do(ctx context.Context) (*report, int) {
	begin := time.Now()
	var stopped error
	err := async.Scope(ctx, func(ctx context.Context) error {
		failOnSignal(ctx)
		err := c.open(ctx)
		if err == nil {
			err = c.run(ctx)
		}
		stopped = context.Cause(ctx)
		return err
	}, async.Name("crawler"), async.Timeout(c.cfg.timeout))

	if err == nil {
		err = c.unreachable()
	}
	status, why := ending(err, stopped)
	return c.report(time.Since(begin), why), status
}

// ending tells how a crawl ended from its error and from what stopped it. A
// TimeoutError can be that of a single request as well, so for a deadline only
// the cause of the whole crawl counts.
func ending(err, stopped error) (status int, why string) {
	var sig *signalError
	var deadline *async.TimeoutError
	switch {
	case err == nil:
		return statusDone, ""
	case errors.As(err, &sig):
		return statusInterrupt, sig.Error()
	case errors.As(stopped, &deadline):
		return statusDeadline, "stopped by -timeout"
	default:
		return statusFailed, err.Error()
	}
}

// A signalError is the cause of a crawl that a signal has stopped.
type signalError struct{ sig os.Signal }

func (e *signalError) Error() string { return "stopped by signal: " + e.sig.String() }

// failOnSignal fails the scope of ctx at the first SIGINT or SIGTERM, so that
// the signal is the cause everything in it is stopped with. A second signal has
// its usual effect, and ends the process at once.
func failOnSignal(ctx context.Context) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	async.Go(ctx, func(ctx context.Context) error {
		defer signal.Stop(signals)
		select {
		case sig := <-signals:
			return &signalError{sig}
		case <-ctx.Done():
			return nil
		}
	}, async.Daemon(), async.Name("signals"))
}
