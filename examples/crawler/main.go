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
// when the arguments are wrong, 124 at the deadline, 130 when interrupted and 143
// when terminated. The last three print what was found so far. (go run hides the
// status: it prints it and exits with 1.)
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

func main() { program().Main() }

// run crawls and writes the report, of a crawl that was stopped as well. It has
// told why that was, so its error then is only an exit status.
func run(ctx context.Context, cfg config, std cli.Streams) error {
	rep, status := newCrawl(cfg, newProgress(std.Err)).do(ctx)
	switch status {
	case cli.StatusDone:
	case cli.StatusFailed:
		return errors.New(rep.Stopped)
	default:
		fmt.Fprintf(std.Err, "crawler: %s; this is what was found so far\n", rep.Stopped)
	}
	if err := rep.write(std.Out, cfg.json); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	if status != cli.StatusDone {
		return &cli.ExitError{Code: status}
	}
	return nil
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
		cli.FailOnSignal(ctx)
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
	var sig *cli.SignalError
	var deadline *async.TimeoutError
	switch {
	case err == nil:
		return cli.StatusDone, ""
	case errors.As(err, &sig):
		return sig.ExitStatus(), sig.Error()
	case errors.As(stopped, &deadline):
		return cli.StatusDeadline, "stopped by -timeout"
	default:
		return cli.StatusFailed, err.Error()
	}
}
