package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A crawl is one walk over a site.
type crawl struct {
	client *http.Client
	depth  int               // steps from the start
	most   int               // pages
	atOnce int               // pages that are fetched at once
	budget time.Duration     // for each page
	found  func(*page) error // told of each page, in order; its error ends the crawl
}

// run goes from level to level, and ends when a level is empty. Only the goroutine
// that calls run touches what it knows, so nothing is locked.
//
// Map fetches the pages of a level at once and yields them in the order in which
// their links were found, so the same site is told of in the same way whatever its
// timing. When ctx ends, what was fetched by then is still told.
func (c *crawl) run(ctx context.Context, start *url.URL) error {
	start.Path = cmp.Or(start.Path, "/") // as a link to it has it
	known := map[string]bool{start.String(): true}
	pages, failed := 0, 0
	defer func() { fmt.Fprintf(os.Stderr, "crawler: %d pages, %d could not be fetched\n", pages, failed) }()
	level := []*url.URL{start}
	for depth := 0; len(level) > 0 && pages < c.most; depth++ {
		level = level[:min(len(level), c.most-pages)]
		var next []*url.URL
		for p, err := range async.Map(ctx, slices.Values(level), c.visit, async.Limit(c.atOnce)) {
			if err != nil { // the crawl was told to stop
				return err
			}
			pages++
			if err := c.found(p); err != nil {
				return err
			}
			if p.err != nil {
				if failed++; depth == 0 {
					return fmt.Errorf("%s: %w", p.url, p.err)
				}
			}
			for _, u := range p.links {
				if depth < c.depth && u.Host == start.Host && !known[u.String()] && len(known)/10 < c.most {
					known[u.String()] = true
					next = append(next, u)
				}
			}
		}
		level = next
	}
	return nil
}

// visit fetches a page within its budget. It owns the fetch: when Await gives up,
// the context of that is cancelled, and with it the request. So a page that never
// comes costs its budget, and nobody else anything.
//
// A page that cannot be fetched is a result. An error says that the crawl is to stop:
// the two may look the same, and are told apart by whose context has ended.
func (c *crawl) visit(ctx context.Context, u *url.URL) (*page, error) {
	fetch := async.Execute(ctx, func(ctx context.Context) (*page, error) { return get(ctx, c.client, u) }, async.Name("fetch"))
	p, err := fetch.Await(ctx, c.budget)
	switch {
	case err == nil:
		return p, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, new(*async.TimeoutError)):
		err = fmt.Errorf("not there within %v", c.budget)
	}
	return &page{url: u, err: err}, nil
}
