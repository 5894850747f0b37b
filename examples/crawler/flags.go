package main

import (
	"context"
	"flag"
	"net/url"
	"strings"
	"time"

	"github.com/ambit-go/ambit/examples/internal/cli"
)

// A config is what the flags say. A zero url stands for the built-in site, a
// zero duration for no limit.
type config struct {
	site        string // as it was given
	url         *url.URL
	depth       int
	concurrency int
	timeout     time.Duration // of the whole crawl
	pageTimeout time.Duration // of one page
	delay       time.Duration // between requests
	json        bool
}

// program is the command: what it does is in main.go.
func program() *cli.Program {
	var cfg config
	return &cli.Program{
		Name:     "crawler",
		Synopsis: "[flags]",
		About: `Crawler walks over a web site breadth first and reports pages, bytes, pages a
second, the slowest pages, and broken links with where they were found.

Without -url it serves the source tree of the local Go installation over HTTP on
the loopback interface and crawls that. With -url it stays on that host, keeps
to its robots.txt, and is polite.

Progress goes to stderr, the report to stdout. Times are written like 500ms, 10s
or 2m.`,
		Exit: `0 complete, 1 could not crawl, 2 wrong arguments, 124 stopped by
-timeout, 130 interrupted, 143 terminated. A stopped crawl reports what it found
so far`,
		Flags: cfg.define,
		Run: func(ctx context.Context, args []string, std cli.Streams) error {
			if err := cfg.complete(args); err != nil {
				return err
			}
			return run(ctx, cfg, std)
		},
	}
}

func (cfg *config) define(flags *flag.FlagSet) {
	flags.StringVar(&cfg.site, "url", "", "crawl the site that starts at this `URL`; without it, the Go source tree")
	flags.IntVar(&cfg.depth, "depth", 16, "follow links at most `n` steps away from the start page")
	flags.IntVar(&cfg.concurrency, "concurrency", 8, "fetch at most `n` pages at the same time")
	flags.DurationVar(&cfg.timeout, "timeout", 5*time.Minute, "stop the whole crawl after this `time`; 0 for no limit")
	flags.DurationVar(&cfg.pageTimeout, "page-timeout", 10*time.Second, "give up on a page after this `time`; 0 for no limit")
	flags.DurationVar(&cfg.delay, "delay", 500*time.Millisecond, "with -url: leave at least this `time` between requests, more if robots.txt asks for it")
	flags.BoolVar(&cfg.json, "json", false, "report in JSON rather than as a table")
}

// complete looks at what the flags say and at the arguments after them. Its
// errors are ready to be shown and say what to do.
func (cfg *config) complete(args []string) (err error) {
	if len(args) > 0 {
		return cli.Usagef("unexpected argument %q; a site is given as -url %[1]s", args[0])
	}
	if err := cfg.check(); err != nil {
		return err
	}
	if cfg.site == "" {
		cfg.delay = 0 // nobody needs to be polite to himself
		return nil
	}
	cfg.url, err = parseSite(cfg.site)
	return err
}

// parseSite reads the value of -url.
func parseSite(site string) (*url.URL, error) {
	u, err := url.Parse(site)
	switch {
	case err != nil:
		return nil, cli.Usagef("-url %q is not a URL", site)
	case u.Scheme != "http" && u.Scheme != "https" && !strings.Contains(site, "://"):
		return nil, cli.Usagef("-url %q has no scheme; did you mean -url https://%[1]s?", site)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, cli.Usagef("-url %q: only http and https can be crawled", site)
	case !hasHost(u):
		return nil, cli.Usagef("-url %q names no host", site)
	case u.User != nil:
		return nil, cli.Usagef("-url must not hold a user name or password; they would end up in the report")
	}
	return normalize(u), nil
}

// check refuses numbers that make no sense.
func (cfg *config) check() error {
	switch {
	case cfg.depth < 0:
		return cli.Usagef("-depth must be 0 or more; 0 crawls the start page only")
	case cfg.concurrency < 1:
		return cli.Usagef("-concurrency must be 1 or more")
	case cfg.timeout < 0:
		return cli.Usagef("-timeout must not be negative; 0 sets no limit")
	case cfg.pageTimeout < 0:
		return cli.Usagef("-page-timeout must not be negative; 0 sets no limit")
	case cfg.delay < 0:
		return cli.Usagef("-delay must not be negative; 0 leaves none")
	}
	return nil
}
