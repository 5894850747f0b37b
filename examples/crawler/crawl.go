package main

import (
	"context"
	"net/url"

	"github.com/ambit-go/ambit/async"
)

// maxHops is how many redirects in a row are followed.
const maxHops = 10

// A crawl is one walk over a site. Only the goroutine that runs it touches its
// fields: tasks hand their pages back through futures, so nothing is locked.
type crawl struct {
	cfg      config
	site     *site
	fetcher  *fetcher
	progress *progress
	known    map[string]*link // every link ever found, by its URL
	found    []*link          // the same, in the order they were found
}

// A link is a URL that a page points to, and what became of it. There is one
// for each URL, however often it is found, so each is fetched at most once.
type link struct {
	url     *url.URL
	depth   int      // steps from the start page
	hops    int      // redirects in a row that led here
	skipped skip     // why it is not fetched
	from    []string // the first pages it was found on
	more    int      // how many more there were
	page    *page    // nil until it was visited
}

// A skip says why a link is not fetched.
type skip uint8

const (
	followed    skip = iota
	offSite          // another scheme, host or port
	disallowed       // by robots.txt
	tooDeep          // more than -depth steps away
	tooManyHops      // the last of more than maxHops redirects
)

func newCrawl(cfg config, p *progress) *crawl {
	return &crawl{cfg: cfg, fetcher: newFetcher(cfg.concurrency), progress: p, known: make(map[string]*link)}
}

// open finds out what is to be crawled: the site of -url, or one that it starts
// to serve in the scope of ctx.
func (c *crawl) open(ctx context.Context) (err error) {
	async.OnExit(ctx, c.fetcher.close)
	if c.cfg.url == nil {
		c.site, err = serveGoSource(ctx)
		return err
	}
	rules := async.Execute(ctx, func(ctx context.Context) (*rules, error) {
		return fetchRules(ctx, c.fetcher, c.cfg.url)
	}, async.Name("robots.txt"))
	r, err := rules.Await(ctx, c.cfg.pageTimeout)
	if err != nil {
		return err
	}
	c.site, err = newSite(c.cfg.url, r, c.cfg.delay)
	return err
}

// run crawls the site until no page is left, or returns the cause for which it
// was told to stop. The progress display is a daemon: it ends with the rest.
func (c *crawl) run(ctx context.Context) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		async.Go(ctx, c.progress.show, async.Daemon(), async.Name("progress"))
		return c.levels(ctx)
	}, async.Name("crawl"))
}

// levels goes from level to level, which is what makes the crawl breadth first:
// no page is fetched before all pages that are nearer to the start. A slow page
// therefore holds up the next level, for -page-timeout at most.
func (c *crawl) levels(ctx context.Context) error {
	level := c.follow(nil, &link{}, c.site.start, 0, 0)
	for len(level) > 0 {
		moved, next, err := c.visitAll(ctx, level)
		for err == nil && len(moved) > 0 { // a redirect is no step away
			var more []*link
			moved, more, err = c.visitAll(ctx, moved)
			next = append(next, more...)
		}
		if err != nil {
			return err
		}
		level = next
	}
	return nil
}

// visitAll visits links, at most -concurrency at a time, and returns where they
// redirect to and what they link to. Visits are awaited in order, so whatever
// the timing, the same site gives the same report.
//
// When ctx ends, the pages that were there by then are still taken: a settled
// future wins over a cancelled context.
func (c *crawl) visitAll(ctx context.Context, links []*link) (moved, next []*link, err error) {
	err = async.Scope(ctx, func(ctx context.Context) error {
		visits := make([]*async.Future[*page], len(links))
		for i, l := range links {
			visits[i] = async.Execute(ctx, func(ctx context.Context) (*page, error) {
				return c.visit(ctx, l.url)
			})
		}
		var stop error
		for i, l := range links {
			p, err := visits[i].Await(ctx, 0) // a visit limits itself
			if err != nil {
				stop = err
				continue
			}
			l.page = p
			if p.moved != nil {
				moved = c.follow(moved, l, p.moved, l.depth, l.hops+1)
			}
			for _, u := range p.links {
				next = c.follow(next, l, u, l.depth+1, 0)
			}
			p.links = nil
		}
		return stop
	}, async.Name("level"), async.Limit(c.cfg.concurrency))
	return moved, next, err
}

// visit is the task of one page: it waits for its turn, owns a fetch, and awaits
// that for -page-timeout. When Await gives up, the fetch is aborted: its context
// is cancelled, and the request with it. So a page that hangs costs no more than
// its budget, and while visit awaits, its slot of the Limit is the fetch's.
//
// A page that cannot be fetched is a result; the error says that the crawl was
// told to stop.
func (c *crawl) visit(ctx context.Context, u *url.URL) (*page, error) {
	if err := c.site.pace.wait(ctx); err != nil {
		return nil, err
	}
	fetch := async.Execute(ctx, func(ctx context.Context) (*page, error) {
		return c.fetcher.get(ctx, u)
	}, async.Name(u.String()))
	p, err := fetch.Await(ctx, c.cfg.pageTimeout)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p = failedPage(err)
	}
	p.parse(u)
	c.progress.visited(p.size)
	return p, nil
}

// follow notes that u was found on from. If u is new and may be fetched, it is
// appended to queue.
func (c *crawl) follow(queue []*link, from *link, u *url.URL, depth, hops int) []*link {
	key := u.String()
	if l, ok := c.known[key]; ok {
		l.foundOn(from)
		return queue
	}
	l := &link{url: u, depth: depth, hops: hops, skipped: c.skip(u, depth, hops)}
	l.foundOn(from)
	c.known[key] = l
	c.found = append(c.found, l)
	if l.skipped != followed {
		return queue
	}
	c.progress.queued()
	return append(queue, l)
}

func (c *crawl) skip(u *url.URL, depth, hops int) skip {
	switch {
	case !c.site.holds(u):
		return offSite
	case !c.site.rules.allow(u):
		return disallowed
	case depth > c.cfg.depth:
		return tooDeep
	case hops > maxHops:
		return tooManyHops
	default:
		return followed
	}
}

// foundOn notes where l was found. A few places are enough to repair a link,
// and a page that every other one links to must not cost memory for each.
func (l *link) foundOn(from *link) {
	const enough = 5
	switch {
	case from.url == nil: // the start page was found by nobody
	case len(l.from) < enough:
		l.from = append(l.from, from.url.String())
	default:
		l.more++
	}
}
