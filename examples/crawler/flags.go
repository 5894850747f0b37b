package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"
)

// A config is what the flags say. A zero url stands for the built-in site, a
// zero duration for no limit.
type config struct {
	url         *url.URL
	depth       int
	concurrency int
	timeout     time.Duration // of the whole crawl
	pageTimeout time.Duration // of one page
	delay       time.Duration // between requests
	json        bool
}

var errHelp = flag.ErrHelp

// parseFlags reads args. Its errors are ready to be shown and say what to do.
func parseFlags(args []string) (config, error) {
	var cfg config
	var site string
	flags := newFlags(&cfg, &site)
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	if flags.NArg() > 0 {
		return cfg, fmt.Errorf("unexpected argument %q; a site is given as -url %[1]s", flags.Arg(0))
	}
	if err := cfg.check(); err != nil {
		return cfg, err
	}
	if site == "" {
		cfg.delay = 0 // nobody needs to be polite to himself
		return cfg, nil
	}
	var err error
	cfg.url, err = parseSite(site)
	return cfg, err
}

func newFlags(cfg *config, site *string) *flag.FlagSet {
	flags := flag.NewFlagSet("crawler", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(site, "url", "", "crawl the site that starts at this `URL`; without it, the Go source tree")
	flags.IntVar(&cfg.depth, "depth", 16, "follow links at most `n` steps away from the start page")
	flags.IntVar(&cfg.concurrency, "concurrency", 8, "fetch at most `n` pages at the same time")
	flags.DurationVar(&cfg.timeout, "timeout", 5*time.Minute, "stop the whole crawl after this `time`; 0 for no limit")
	flags.DurationVar(&cfg.pageTimeout, "page-timeout", 10*time.Second, "give up on a page after this `time`; 0 for no limit")
	flags.DurationVar(&cfg.delay, "delay", 500*time.Millisecond, "with -url: leave at least this `time` between requests, more if robots.txt asks for it")
	flags.BoolVar(&cfg.json, "json", false, "report in JSON rather than as a table")
	return flags
}

// parseSite reads the value of -url.
func parseSite(site string) (*url.URL, error) {
	u, err := url.Parse(site)
	switch {
	case err != nil:
		return nil, fmt.Errorf("-url %q is not a URL", site)
	case u.Scheme != "http" && u.Scheme != "https" && !strings.Contains(site, "://"):
		return nil, fmt.Errorf("-url %q has no scheme; did you mean -url https://%[1]s?", site)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("-url %q: only http and https can be crawled", site)
	case !hasHost(u):
		return nil, fmt.Errorf("-url %q names no host", site)
	case u.User != nil:
		return nil, fmt.Errorf("-url must not hold a user name or password; they would end up in the report")
	}
	return normalize(u), nil
}

// check refuses numbers that make no sense.
func (cfg *config) check() error {
	switch {
	case cfg.depth < 0:
		return errors.New("-depth must be 0 or more; 0 crawls the start page only")
	case cfg.concurrency < 1:
		return errors.New("-concurrency must be 1 or more")
	case cfg.timeout < 0:
		return errors.New("-timeout must not be negative; 0 sets no limit")
	case cfg.pageTimeout < 0:
		return errors.New("-page-timeout must not be negative; 0 sets no limit")
	case cfg.delay < 0:
		return errors.New("-delay must not be negative; 0 leaves none")
	}
	return nil
}

// usage is the text of -h. The flags print their own defaults.
func usage() string {
	var b strings.Builder
	b.WriteString(`Crawler walks over a web site breadth first and reports pages, bytes, pages a
second, the slowest pages, and broken links with where they were found.

	crawler [flags]

Without -url it serves the source tree of the local Go installation over HTTP on
the loopback interface and crawls that. With -url it stays on that host, keeps
to its robots.txt, and is polite.

Flags (times are written like 500ms, 10s or 2m):

`)
	flags := newFlags(new(config), new(string))
	flags.SetOutput(&b)
	flags.PrintDefaults()
	b.WriteString(`
Exit status: 0 complete, 1 could not crawl, 2 wrong arguments, 124 stopped by
-timeout, 130 interrupted. A stopped crawl reports what it found so far.
Progress goes to stderr, the report to stdout.
`)
	return b.String()
}
